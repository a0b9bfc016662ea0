/* Bytes in host memory: constants of the program, and what it writes itself. */
typedef struct bytes {
    object header;
    uint8_t *data;
    uint64_t size;
    bool is_constant;
} bytes;

static void bytes_destroy(NAME_program *p, object *unused)
{
    (void)p;
    free(unused);
}

static int bytes_alloc(NAME_program *p, int64_t size, bytes **result)
{
    bytes *made = NULL;
    if (size >= 0 && (uint64_t)size <= SIZE_MAX / 2) made = calloc(1, sizeof *made + (size_t)size);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "no memory for %" PRId64 " bytes", size);
    made->header.references = 1;
    made->header.destroy = bytes_destroy;
    made->data = (uint8_t *)(made + 1);
    made->size = (uint64_t)size;
    REPLACE(*result, made);
    return OK;
}

/* A constant of the program, in place. */
static int bytes_constant(NAME_program *p, const uint8_t *data, uint64_t size, bytes **result)
{
    bytes *made = calloc(1, sizeof *made);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    made->header.references = 1;
    made->header.destroy = bytes_destroy;
    memcpy(&made->data, &data, sizeof data);
    made->size = size;
    made->is_constant = true;
    REPLACE(*result, made);
    return OK;
}

/* A range that is read. */
static int bytes_at(NAME_program *p, const bytes *from, int64_t offset, int64_t size, uint8_t **result)
{
    if (!from) return fail(p, INVALID_ARGUMENT, "expected a buffer of host memory, got none");
    if (offset < 0 || size < 0 || (uint64_t)offset > from->size || (uint64_t)size > from->size - (uint64_t)offset) {
        return fail(p, OUT_OF_RANGE, "%" PRId64 " bytes at %" PRId64 " do not lie within %" PRIu64, size, offset,
                    from->size);
    }
    *result = from->data + offset;
    return OK;
}

/* A range that is written. */
static int bytes_into(NAME_program *p, const bytes *target, int64_t offset, int64_t size, uint8_t **result)
{
    if (target && target->is_constant) return fail(p, PERMISSION_DENIED, "expected a writable buffer, got a constant");
    return bytes_at(p, target, offset, size, result);
}

/* Bytes of a number of elements; more than a buffer has where that is not a number of bytes. */
static int64_t bytes_of(int64_t count, size_t size)
{
    return count > INT64_MAX / (int64_t)size || count < INT64_MIN / (int64_t)size ? -1 : count * (int64_t)size;
}

static int bytes_clone(NAME_program *p, const bytes *source, int64_t offset, int64_t size, bytes **result)
{
    int status = OK;
    uint8_t *from = NULL;
    bytes *made = NULL;
    TRY(bytes_at(p, source, offset, size, &from));
    TRY(bytes_alloc(p, size, &made));
    memcpy(made->data, from, (size_t)size);
    REPLACE(*result, made);
    made = NULL;
done:
    release(p, made);
    return status;
}

static int bytes_copy(NAME_program *p, const bytes *source, int64_t from_offset, const bytes *target, int64_t to_offset,
                      int64_t size)
{
    uint8_t *from = NULL, *to = NULL;
    int status = bytes_at(p, source, from_offset, size, &from);
    if (status == OK) status = bytes_into(p, target, to_offset, size, &to);
    if (status == OK) memmove(to, from, (size_t)size);
    return status;
}

static int bytes_compare(NAME_program *p, const bytes *left, int64_t left_offset, const bytes *right,
                         int64_t right_offset, int64_t size, int32_t *result)
{
    uint8_t *one = NULL, *other = NULL;
    int status = bytes_at(p, left, left_offset, size, &one);
    if (status == OK) status = bytes_at(p, right, right_offset, size, &other);
    if (status == OK) *result = !memcmp(one, other, (size_t)size);
    return status;
}

/* Reads the element at an index that counts elements of its size, as those of stores and fills do. */
static int bytes_load(NAME_program *p, const bytes *source, int64_t index, void *value, size_t size)
{
    uint8_t *from = NULL;
    int status = bytes_at(p, source, bytes_of(index, size), (int64_t)size, &from);
    if (status == OK) memcpy(value, from, size);
    return status;
}

static int bytes_fill(NAME_program *p, const bytes *target, int64_t index, int64_t count, const void *value,
                      size_t size)
{
    uint8_t *to = NULL;
    int status = bytes_into(p, target, bytes_of(index, size), bytes_of(count, size), &to);
    for (int64_t each = 0; status == OK && each < count; each++) memcpy(to + each * (int64_t)size, value, size);
    return status;
}

static int bytes_store(NAME_program *p, const bytes *target, int64_t index, const void *value, size_t size)
{
    return bytes_fill(p, target, index, 1, value, size);
}
