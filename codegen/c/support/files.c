/* Bytes that the queue reads. */
typedef struct file {
    object header;
    bytes *source;
    const uint8_t *data;
    uint64_t size;
} file;

static void file_destroy(NAME_program *p, object *unused)
{
    release(p, ((file *)(void *)unused)->source);
    free(unused);
}

static int file_create(NAME_program *p, bytes *source, int64_t offset, int64_t size, file **result)
{
    uint8_t *data = NULL;
    if (size == -1 && source && offset >= 0) size = (int64_t)source->size - offset;
    int status = bytes_at(p, source, offset, size, &data);
    if (status != OK) return status;
    file *made = calloc(1, sizeof *made);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    made->header.references = 1;
    made->header.destroy = file_destroy;
    made->source = retain(source);
    made->data = data;
    made->size = (uint64_t)size;
    REPLACE(*result, made);
    return OK;
}

/* Reads bytes of a file into a buffer. */
static int queue_read(NAME_program *p, const fence *wait, fence *signal, const file *source, uint64_t offset, buffer *to,
                      uint64_t to_offset, uint64_t size)
{
    if (!source || offset > source->size || size > source->size - offset) {
        return fail(p, OUT_OF_RANGE, "%" PRIu64 " bytes at %" PRIu64 " do not lie within a file", size, offset);
    }
    if (!to) return fail(p, INVALID_ARGUMENT, "expected a buffer to write, got none");
    if (wait) return queue_update(p, wait, signal, source->data + offset, size, to, to_offset);
    int status = buffer_write(p, to, to_offset, source->data + offset, size);
    return status == OK ? fence_follow(p, wait, signal) : status;
}

/* A buffer over host memory is a copy, which the device reads as fast as any other. */
static int buffer_import(NAME_program *p, const bytes *source, int64_t offset, int64_t size, buffer **result)
{
    int status = OK;
    uint8_t *data = NULL;
    buffer *made = NULL;
    if (size == -1 && source && offset >= 0) size = (int64_t)source->size - offset;
    TRY(bytes_at(p, source, offset, size, &data));
    TRY(buffer_new(p, (uint64_t)size, false, &made));
    TRY(buffer_write(p, made, 0, data, (uint64_t)size));
    REPLACE(*result, made);
    made = NULL;
done:
    release(p, made);
    return status;
}
