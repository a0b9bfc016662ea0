/* One function of an executable. */
typedef struct pipeline {
    const pipeline_source *source;
    VkPipeline handle;
    VkPipelineLayout layout;
    VkDescriptorSetLayout sets[MAX_SETS];
} pipeline;

typedef struct executable {
    const executable_source *source;
    pipeline *pipelines;
} executable;

/* A range of a buffer, or of what a call binds to a slot. */
typedef struct binding {
    uint32_t slot;
    buffer *buffer;  /* none: the slot's */
    uint64_t offset; /* bytes */
    uint64_t length; /* bytes; UINT64_MAX: all that follows */
} binding;

typedef enum operation { DISPATCH, DISPATCH_INDIRECT, COPY, FILL, BARRIER } operation;

typedef struct command {
    operation operation;
    const pipeline *pipeline;
    uint32_t counts[3]; /* workgroups */
    uint32_t first_binding, binding_count;
    uint32_t first_constant, constant_count;
    uint32_t pattern, pattern_size; /* of a fill */
} command;

/* The memory of a slot, by which recordings are known. */
typedef struct bound {
    uint64_t serial; /* 0: no buffer */
    uint64_t offset, length;
} bound;

/* Commands for the buffers of one call: a table of them that comes again runs again as it was recorded. */
typedef struct recording {
    VkCommandBuffer handle;
    VkDescriptorPool pool;
    bound *table;
    object *staged; /* host memory that its fills copy from */
    uint64_t value; /* point of the timeline after which the device is done with it */
    uint64_t turn;  /* when it ran last */
    struct recording *next;
} recording;

enum { MAX_RECORDINGS = 8 };

/* Commands that are replayed on the buffers of each call. */
typedef struct commands {
    object header;
    command *commands;
    binding *bindings;
    uint32_t *constants;
    recording *recordings[MAX_RECORDINGS];
    uint32_t command_count, command_room, binding_count, binding_room, constant_count, constant_room;
    uint32_t slot_count;
    uint32_t dispatch_count, set_count;
    uint64_t turn;
} commands;

static void staged_release(NAME_program *p, recording *unused)
{
    while (unused->staged) {
        object *each = unused->staged;
        unused->staged = each->next;
        release(p, each);
    }
}

static void recording_free(NAME_program *p, recording *unused)
{
    if (!unused) return;
    staged_release(p, unused);
    if (unused->pool) vkDestroyDescriptorPool(p->device, unused->pool, NULL);
    if (unused->handle) vkFreeCommandBuffers(p->device, p->pool, 1, &unused->handle);
    free(unused->table);
    free(unused);
}

/* Frees recordings whose commands are gone, once the device is done with them. */
static void retired_free(NAME_program *p, bool is_idle)
{
    if (!p->retired) return;
    uint64_t value = 0;
    if (!is_idle && vkGetSemaphoreCounterValue(p->device, p->timeline, &value) != VK_SUCCESS) return;
    for (recording **place = &p->retired; *place;) {
        recording *each = *place;
        if (is_idle || each->value <= value) {
            *place = each->next;
            recording_free(p, each);
        } else {
            place = &each->next;
        }
    }
}

static void commands_destroy(NAME_program *p, object *unused)
{
    commands *found = (commands *)(void *)unused;
    for (uint32_t index = 0; index < MAX_RECORDINGS; index++) {
        recording *each = found->recordings[index];
        if (!each) continue;
        each->next = p->retired;
        p->retired = each;
    }
    for (uint32_t index = 0; index < found->binding_count; index++) release(p, found->bindings[index].buffer);
    free(found->commands);
    free(found->bindings);
    free(found->constants);
    free(found);
    retired_free(p, false);
}

static int commands_create(NAME_program *p, uint32_t slot_count, commands **result)
{
    commands *made = calloc(1, sizeof *made);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    made->header.references = 1;
    made->header.destroy = commands_destroy;
    made->slot_count = slot_count;
    REPLACE(*result, made);
    return OK;
}

static int commands_bind(NAME_program *p, commands *target, const binding *bindings, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        const binding *each = &bindings[index];
        if (!each->buffer && each->slot >= target->slot_count) {
            return fail(p, INVALID_ARGUMENT, "slot %" PRIu32 " of a table of %" PRIu32, each->slot, target->slot_count);
        }
        void *items = target->bindings;
        int status = grow(p, &items, &target->binding_room, target->binding_count, sizeof *target->bindings);
        target->bindings = items;
        if (status != OK) return status;
        target->bindings[target->binding_count] = *each;
        retain(each->buffer);
        target->binding_count++;
    }
    return OK;
}

static int commands_add(NAME_program *p, commands *target, command added, const binding *bindings)
{
    if (!target) return fail(p, INVALID_ARGUMENT, "expected a command buffer, got none");
    added.first_binding = target->binding_count;
    int status = commands_bind(p, target, bindings, added.binding_count);
    if (status != OK) return status;
    void *items = target->commands;
    status = grow(p, &items, &target->command_room, target->command_count, sizeof *target->commands);
    target->commands = items;
    if (status == OK) target->commands[target->command_count++] = added;
    return status;
}

static int commands_barrier(NAME_program *p, commands *target)
{
    return commands_add(p, target, (command){.operation = BARRIER}, NULL);
}

static int commands_copy(NAME_program *p, commands *target, binding from, binding to)
{
    const binding both[] = {from, to};
    return commands_add(p, target, (command){.operation = COPY, .binding_count = 2}, both);
}

static int commands_fill(NAME_program *p, commands *target, binding to, uint32_t pattern, uint32_t width)
{
    if (width != 1 && width != 2 && width != 4) return fail(p, INVALID_ARGUMENT, "a fill pattern has 1, 2 or 4 bytes");
    const command fill = {.operation = FILL, .binding_count = 1, .pattern = pattern, .pattern_size = width};
    return commands_add(p, target, fill, &to);
}

/* Writes host bytes as they are now. */
static int commands_update(NAME_program *p, commands *target, const bytes *source, int64_t offset, uint64_t size,
                           binding to)
{
    int status = OK;
    uint8_t *data = NULL;
    buffer *staged = NULL;
    TRY(bytes_at(p, source, offset, (int64_t)size, &data));
    TRY(buffer_new(p, size, true, &staged));
    TRY(buffer_write(p, staged, 0, data, size));
    TRY(commands_copy(p, target, (binding){.buffer = staged, .length = size}, to));
done:
    release(p, staged);
    return status;
}

/* The bindings of an indirect dispatch end with the range of its counts. */
static int commands_dispatch(NAME_program *p, commands *target, const executable *executable, int64_t function,
                             operation operation, const uint32_t counts[3], const uint32_t *constants,
                             uint32_t constant_count, const binding *bindings, uint32_t binding_count)
{
    if (!target || !executable || !executable->pipelines) {
        return fail(p, INVALID_ARGUMENT, "expected a command buffer and an executable, got none");
    }
    if (function < 0 || function >= executable->source->pipeline_count) {
        return fail(p, OUT_OF_RANGE, "an executable has no function %" PRId64, function);
    }
    const pipeline *run = &executable->pipelines[function];
    const uint32_t bound = binding_count - (operation == DISPATCH_INDIRECT);
    if (bound != run->source->binding_count || 4 * constant_count > run->source->push_bytes) {
        return fail(p, INVALID_ARGUMENT,
                    "%s: expected %" PRIu32 " bindings and at most %" PRIu32 " constants, got %" PRIu32 " and %" PRIu32,
                    run->source->entry_point, run->source->binding_count, run->source->push_bytes / 4, bound,
                    constant_count);
    }
    command added = {
        .operation = operation,
        .pipeline = run,
        .binding_count = binding_count,
        .first_constant = target->constant_count,
        .constant_count = constant_count,
    };
    if (operation == DISPATCH) {
        if (!counts[0] || !counts[1] || !counts[2]) return OK;
        for (int axis = 0; axis < 3; axis++) {
            added.counts[axis] = counts[axis];
            if (counts[axis] > p->limits.maxComputeWorkGroupCount[axis]) {
                return fail(p, RESOURCE_EXHAUSTED, "%s: %" PRIu32 " workgroups along axis %d; the device runs %" PRIu32,
                            run->source->entry_point, counts[axis], axis, p->limits.maxComputeWorkGroupCount[axis]);
            }
        }
    }
    for (uint32_t index = 0; index < constant_count; index++) {
        void *items = target->constants;
        int status = grow(p, &items, &target->constant_room, target->constant_count, sizeof *target->constants);
        target->constants = items;
        if (status != OK) return status;
        target->constants[target->constant_count++] = constants[index];
    }
    target->dispatch_count++;
    target->set_count += run->source->set_count;
    return commands_add(p, target, added, bindings);
}
