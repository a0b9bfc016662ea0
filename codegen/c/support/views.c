/* A tensor: a buffer with a shape and the type of its elements. */
typedef struct view {
    object header;
    buffer *buffer;
    int32_t element_type, encoding;
    uint32_t rank;
    int64_t shape[NAME_MAX_RANK];
} view;

static void view_destroy(NAME_program *p, object *unused)
{
    release(p, ((view *)(void *)unused)->buffer);
    object_keep(&p->spare_views, unused);
}

static int view_create(NAME_program *p, buffer *source, uint64_t offset, uint64_t length, int32_t element_type,
                       int32_t encoding, const int64_t *shape, uint32_t rank, view **result)
{
    int status = OK;
    object *made = NULL;
    buffer *part = NULL;
    if (!source) return fail(p, INVALID_ARGUMENT, "expected a buffer to view, got none");
    if (rank > NAME_MAX_RANK) return fail(p, OUT_OF_RANGE, "expected at most %d axes", NAME_MAX_RANK);
    uint64_t bits = (uint64_t)element_type & 0xFF;
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0) return fail(p, INVALID_ARGUMENT, "a length is negative: %" PRId64, shape[axis]);
        if (shape[axis] && bits > UINT64_MAX / (uint64_t)shape[axis]) return fail(p, OUT_OF_RANGE, "too many elements");
        bits *= (uint64_t)shape[axis];
    }
    TRY(buffer_part(p, source, offset, length, &part));
    if ((bits + 7) / 8 > part->size) {
        status = fail(p, OUT_OF_RANGE, "%" PRIu64 " bytes of elements do not fit a buffer of %" PRIu64 " bytes",
                      (bits + 7) / 8, part->size);
        goto done;
    }
    TRY(object_new(p, &p->spare_views, sizeof(view), view_destroy, &made));
    view *found = (view *)(void *)made;
    found->buffer = retain(part);
    found->element_type = element_type;
    found->encoding = encoding;
    found->rank = rank;
    if (rank) memcpy(found->shape, shape, rank * sizeof *shape);
    REPLACE(*result, found);
done:
    release(p, part);
    return status;
}

static void shape_text(char *text, size_t size, const int64_t *shape, uint32_t rank)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t axis = 0; axis < rank && used < size; axis++) {
        const int count = shape[axis] < 0 ? snprintf(text + used, size - used, "%s?", axis ? "x" : "")
                                          : snprintf(text + used, size - used, "%s%" PRId64, axis ? "x" : "", shape[axis]);
        if (count > 0) used += (size_t)count;
    }
}

static int view_assert(NAME_program *p, const view *found, const char *name, int32_t element_type, int32_t encoding,
                       const int64_t *shape, uint32_t rank)
{
    if (!found) return fail(p, INVALID_ARGUMENT, "%s: expected a tensor, got none", name);
    (void)encoding;
    /* Integers may differ in their signs. */
    const uint32_t have = (uint32_t)found->element_type, want = (uint32_t)element_type;
    if (have != want && !((have >> 28 & want >> 28) == 1 && (have & 0xFF) == (want & 0xFF))) {
        return fail(p, INVALID_ARGUMENT, "%s: expected elements of type %08" PRIX32 ", got %08" PRIX32, name, want, have);
    }
    bool is_equal = found->rank == rank;
    for (uint32_t axis = 0; is_equal && axis < rank; axis++) is_equal = found->shape[axis] == shape[axis];
    if (is_equal) return OK;
    char expected[160], got[160];
    shape_text(expected, sizeof expected, shape, rank);
    shape_text(got, sizeof got, found->shape, found->rank);
    return fail(p, INVALID_ARGUMENT, "%s: expected the shape [%s], got [%s]", name, expected, got);
}

static int view_buffer(NAME_program *p, const view *found, buffer **result)
{
    if (!found) return fail(p, INVALID_ARGUMENT, "expected a tensor, got none");
    ASSIGN(*result, found->buffer);
    return OK;
}

static int64_t view_dim(const view *found, int32_t axis)
{
    return found && axis >= 0 && (uint32_t)axis < found->rank ? found->shape[axis] : 0;
}

static int32_t view_rank(const view *found)
{
    return found ? (int32_t)found->rank : 0;
}

static int32_t view_element_type(const view *found)
{
    return found ? found->element_type : 0;
}

static int32_t view_encoding(const view *found)
{
    return found ? found->encoding : 0;
}
