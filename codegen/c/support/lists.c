/* A list of numbers and references. */
typedef struct list {
    object header;
    struct item {
        void *reference;
        union {
            int64_t integer;
            double real;
        } number;
    } * items;
    uint32_t count;
} list;

static int list_resize(NAME_program *p, list *target, int32_t count)
{
    if (!target || count < 0) return fail(p, INVALID_ARGUMENT, "a list cannot have %" PRId32 " elements", count);
    const uint32_t wanted = (uint32_t)count;
    while (target->count > wanted) release(p, target->items[--target->count].reference);
    struct item *moved = NULL;
    if ((uint64_t)wanted * sizeof *moved <= SIZE_MAX / 2) {
        moved = realloc(target->items, (wanted ? wanted : 1) * sizeof *moved);
    }
    if (!moved) return fail(p, RESOURCE_EXHAUSTED, "no memory for a list of %" PRId32 " elements", count);
    target->items = moved;
    if (wanted > target->count) memset(moved + target->count, 0, (wanted - target->count) * sizeof *moved);
    target->count = wanted;
    return OK;
}

static void list_destroy(NAME_program *p, object *unused)
{
    list *found = (list *)(void *)unused;
    for (uint32_t index = 0; index < found->count; index++) release(p, found->items[index].reference);
    free(found->items);
    free(found);
}

static int list_alloc(NAME_program *p, list **result)
{
    list *made = calloc(1, sizeof *made);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    made->header.references = 1;
    made->header.destroy = list_destroy;
    REPLACE(*result, made);
    return OK;
}

static int list_item(NAME_program *p, const list *from, int32_t index, struct item **result)
{
    if (!from || index < 0 || (uint32_t)index >= from->count) {
        return fail(p, OUT_OF_RANGE, "a list has no element %" PRId32, index);
    }
    *result = &from->items[index];
    return OK;
}

static int list_set_reference(NAME_program *p, const list *target, int32_t index, void *value)
{
    struct item *found = NULL;
    int status = list_item(p, target, index, &found);
    if (status == OK) ASSIGN(found->reference, value);
    return status;
}

static int list_set_integer(NAME_program *p, const list *target, int32_t index, int64_t value)
{
    struct item *found = NULL;
    int status = list_set_reference(p, target, index, NULL);
    if (status == OK) status = list_item(p, target, index, &found);
    if (status == OK) found->number.integer = value;
    return status;
}

static int list_get_integer(NAME_program *p, const list *from, int32_t index, int64_t *result)
{
    struct item *found = NULL;
    int status = list_item(p, from, index, &found);
    if (status == OK) *result = found->number.integer;
    return status;
}

static int list_set_real(NAME_program *p, const list *target, int32_t index, double value)
{
    struct item *found = NULL;
    int status = list_set_reference(p, target, index, NULL);
    if (status == OK) status = list_item(p, target, index, &found);
    if (status == OK) found->number.real = value;
    return status;
}

static int list_get_real(NAME_program *p, const list *from, int32_t index, double *result)
{
    struct item *found = NULL;
    int status = list_item(p, from, index, &found);
    if (status == OK) *result = found->number.real;
    return status;
}

/* A reference in a list, which the caller does not own; what destroys it tells its type. */
static int list_get_reference(NAME_program *p, const list *from, int32_t index,
                              void (*destroy)(NAME_program *, object *), void **result)
{
    struct item *found = NULL;
    int status = list_item(p, from, index, &found);
    if (status != OK) return status;
    const object *held = found->reference;
    if (held && held->destroy != destroy) {
        return fail(p, INVALID_ARGUMENT, "element %" PRId32 " of a list is of another type", index);
    }
    *result = found->reference;
    return OK;
}
