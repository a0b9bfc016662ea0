/* The shape of a tensor of the caller, which a call may leave out where the type says all; and its bytes. */
static int tensor_shape(NAME_program *p, const NAME_type *type, const NAME_tensor *given, int64_t *shape,
                        uint64_t *size)
{
    bool fits = given->rank == type->rank || (given->rank == 0 && type->is_static);
    uint64_t bits = type->bits;
    for (uint32_t axis = 0; axis < type->rank && fits; axis++) {
        shape[axis] = given->rank ? given->shape[axis] : type->shape[axis];
        fits = shape[axis] >= 0 && (type->shape[axis] < 0 || shape[axis] == type->shape[axis])
            && (shape[axis] == 0 || bits <= (uint64_t)INT64_MAX / (uint64_t)shape[axis]);
        bits *= (uint64_t)shape[axis];
    }
    if (!fits) {
        char expected[160], got[160];
        const uint32_t rank = given->rank < NAME_MAX_RANK ? given->rank : NAME_MAX_RANK;
        shape_text(expected, sizeof expected, type->shape, type->rank);
        shape_text(got, sizeof got, given->shape, rank);
        return fail(p, INVALID_ARGUMENT, "%s: expected the shape [%s], got [%s]%s", type->name, expected, got,
                    type->is_static ? "" : "; rank and shape say its lengths, 0 or more");
    }
    *size = (bits + 7) / 8;
    return OK;
}

/* A tensor of the caller as the program takes it: its own memory where it lies on the device, else a copy. */
static int tensor_view(NAME_program *p, const NAME_type *type, const NAME_tensor *given, bool is_output, view **result)
{
    int status = OK;
    int64_t shape[NAME_MAX_RANK];
    uint64_t size = 0;
    buffer *memory = NULL;
    TRY(tensor_shape(p, type, given, shape, &size));
    if (given->buffer) {
        const uint64_t alignment = p->limits.minStorageBufferOffsetAlignment;
        if ((given->buffer->offset + given->offset) % alignment) {
            status = fail(p, INVALID_ARGUMENT, "%s: expected an offset that is a multiple of %" PRIu64 ", got %" PRIu64,
                          type->name, alignment, given->offset);
            goto done;
        }
        if (given->offset > given->buffer->size || size > given->buffer->size - given->offset) {
            status = fail(p, OUT_OF_RANGE, "%s: %" PRIu64 " bytes at %" PRIu64 " do not fit a buffer of %" PRIu64 " bytes",
                          type->name, size, given->offset, given->buffer->size);
            goto done;
        }
        TRY(buffer_part(p, given->buffer, given->offset, size, &memory));
    } else {
        if (!is_output && !given->data && size) {
            status = fail(p, INVALID_ARGUMENT, "%s: expected data or a buffer, got neither", type->name);
            goto done;
        }
        if (given->data && given->size && given->size < size) {
            status = fail(p, OUT_OF_RANGE, "%s: expected %" PRIu64 " bytes, got room for %" PRIu64, type->name, size,
                          given->size);
            goto done;
        }
        TRY(buffer_new(p, size, false, &memory));
        if (!is_output) TRY(buffer_write(p, memory, 0, given->data, size));
    }
    TRY(view_create(p, memory, 0, UINT64_MAX, type->element_type, 1, shape, type->rank, result));
done:
    release(p, memory);
    return status;
}

/* Outputs are written while inputs are still read, so they have memory of their own, or that of an input in `reuses`. */
static int tensors_check(NAME_program *p, view *const *inputs, uint32_t input_count, view *const *outputs,
                         uint32_t output_count, const NAME_type *types, const uint64_t *reuses)
{
    for (uint32_t output = 0; output < output_count; output++) {
        const buffer *to = outputs[output] ? outputs[output]->buffer : NULL;
        for (uint32_t other = 0; to && to->size && other < input_count + output; other++) {
            const view *found = other < input_count ? inputs[other] : outputs[other - input_count];
            const buffer *from = found ? found->buffer : NULL;
            if (!from || !from->size || from->handle != to->handle) continue;
            /* All of it, in place. */
            const bool is_reused = other < input_count && other < 64 && reuses[output] >> other & 1;
            if (is_reused && from->offset == to->offset) continue;
            if (from->offset + from->size <= to->offset || to->offset + to->size <= from->offset) continue;
            return fail(p, INVALID_ARGUMENT, "%s: expected memory of its own, got that of another tensor of the call",
                        types[output].name);
        }
    }
    return OK;
}

/* Asynchronous calls leave memory to the device, which has to hold it. */
static int tensor_on_device(NAME_program *p, const NAME_type *type, const NAME_tensor *given)
{
    return given->buffer ? OK : fail(p, INVALID_ARGUMENT, "%s: expected a buffer of the device, got none", type->name);
}

/* Gives a result to the caller. */
static int tensor_deliver(NAME_program *p, const NAME_type *type, const view *found, bool is_storage,
                          NAME_tensor *given)
{
    int status = OK;
    if (!found) return fail(p, INTERNAL, "%s: the program gave no tensor", type->name);
    uint64_t bits = type->bits;
    given->rank = found->rank;
    for (uint32_t axis = 0; axis < found->rank; axis++) {
        given->shape[axis] = found->shape[axis];
        bits *= (uint64_t)found->shape[axis];
    }
    const uint64_t size = (bits + 7) / 8;
    if (given->buffer) {
        if (is_storage) return OK;
        if (given->offset > given->buffer->size || size > given->buffer->size - given->offset) {
            return fail(p, OUT_OF_RANGE, "%s: %" PRIu64 " bytes do not fit the caller's buffer", type->name, size);
        }
        if (!size) return OK;
        TRY(transfer(p, found->buffer, 0, given->buffer, given->offset, size, NULL, NULL));
        TRY(wait_until(p, p->submitted));
    } else if (given->data) {
        if (given->size && given->size < size) {
            return fail(p, OUT_OF_RANGE, "%s: expected room for %" PRIu64 " bytes, got %" PRIu64, type->name, size,
                        given->size);
        }
        TRY(buffer_read(p, found->buffer, 0, given->data, size));
    } else {
        given->buffer = retain(found->buffer);
        given->offset = 0;
    }
done:
    return status;
}

/* A number that the program takes as such. */
static int scalar_read(NAME_program *p, const NAME_type *type, const NAME_tensor *given, void *value)
{
    if (given->buffer) return buffer_read(p, given->buffer, given->offset, value, type->bits / 8);
    if (!given->data) return fail(p, INVALID_ARGUMENT, "%s: expected data, got none", type->name);
    memcpy(value, given->data, type->bits / 8);
    return OK;
}

static int scalar_write(NAME_program *p, const NAME_type *type, const void *value, NAME_tensor *given)
{
    int status = OK;
    if (!given->data && !given->buffer) TRY(buffer_new(p, type->bits / 8, false, &given->buffer));
    if (given->buffer) return buffer_write(p, given->buffer, given->offset, value, type->bits / 8);
    memcpy(given->data, value, type->bits / 8);
done:
    return status;
}
