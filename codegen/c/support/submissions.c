/* Runs commands on a table of buffers, one for each slot. */
static int queue_execute(NAME_program *p, const fence *wait, fence *signal, commands *run, const binding *table,
                         uint32_t count)
{
    int status = OK;
    recording *found = NULL;
    if (!run) return fail(p, INVALID_ARGUMENT, "expected a command buffer, got none");
    if (count < run->slot_count) {
        return fail(p, INVALID_ARGUMENT, "expected a table of %" PRIu32 " buffers, got %" PRIu32, run->slot_count, count);
    }
    TRY(recording_find(p, run, table, &found));
    TRY(submit(p, found->handle, wait, signal));
    found->value = p->submitted;
    found->turn = ++run->turn;
    for (uint32_t index = 0; index < run->slot_count; index++) {
        if (table[index].buffer) root_of(table[index].buffer)->last_use = p->submitted;
    }
    for (uint32_t index = 0; index < run->binding_count; index++) {
        if (run->bindings[index].buffer) root_of(run->bindings[index].buffer)->last_use = p->submitted;
    }
    for (object *each = found->staged; each; each = each->next) as_buffer(each)->last_use = p->submitted;
done:
    return status;
}

/* Copies on the device, behind what was submitted before. */
static int transfer(NAME_program *p, buffer *from, uint64_t from_offset, buffer *to, uint64_t to_offset, uint64_t size,
                    const fence *wait, fence *signal)
{
    int status = OK;
    commands *once = NULL;
    if (!from || !to) return fail(p, INVALID_ARGUMENT, "expected two buffers to copy between, got none");
    TRY(commands_create(p, 0, &once));
    TRY(commands_copy(p, once, (binding){.buffer = from, .offset = from_offset, .length = size},
                      (binding){.buffer = to, .offset = to_offset, .length = size}));
    TRY(queue_execute(p, wait, signal, once, NULL, 0));
done:
    release(p, once);
    return status;
}

static int queue_fill(NAME_program *p, const fence *wait, fence *signal, binding to, uint32_t pattern, uint32_t width)
{
    int status = OK;
    commands *once = NULL;
    TRY(commands_create(p, 0, &once));
    TRY(commands_fill(p, once, to, pattern, width));
    TRY(queue_execute(p, wait, signal, once, NULL, 0));
done:
    release(p, once);
    return status;
}

/* Writes host bytes as they are now. */
static int queue_update(NAME_program *p, const fence *wait, fence *signal, const void *data, uint64_t size, buffer *to,
                        uint64_t offset)
{
    int status = OK;
    buffer *staged = NULL;
    if (!to) return fail(p, INVALID_ARGUMENT, "expected a buffer to write, got none");
    TRY(buffer_new(p, size, true, &staged));
    TRY(buffer_write(p, staged, 0, data, size));
    TRY(transfer(p, staged, 0, to, offset, size, wait, signal));
done:
    release(p, staged);
    return status;
}
