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

/* Where a binding lies: a range of a VkBuffer. */
static int resolve(NAME_program *p, const binding *wanted, const binding *table, bool is_descriptor,
                   VkDescriptorBufferInfo *result)
{
    const buffer *found = wanted->buffer;
    uint64_t offset = 0, size;
    if (found) {
        size = found->size;
    } else {
        const binding *entry = &table[wanted->slot];
        found = entry->buffer;
        if (!found) return fail(p, INVALID_ARGUMENT, "slot %" PRIu32 " of a table has no buffer", wanted->slot);
        offset = entry->offset;
        if (offset > found->size) return fail(p, OUT_OF_RANGE, "slot %" PRIu32 " begins behind its buffer", wanted->slot);
        size = found->size - offset;
        if (entry->length < size) size = entry->length;
    }
    const uint64_t before = offset;
    const uint64_t room = found->capacity - before;
    if (wanted->offset > size) goto outside;
    offset += wanted->offset;
    uint64_t length = wanted->length == UINT64_MAX ? size - wanted->offset : wanted->length;
    /* Kernels read and write whole words, for which buffers have room. */
    if (is_descriptor && length <= room) length = round_up(length ? length : 1, 4);
    if (wanted->offset > room || length > room - wanted->offset) goto outside;
    if (!is_descriptor && length > size - wanted->offset) goto outside;
    result->buffer = found->handle;
    result->offset = found->offset + offset;
    result->range = length;
    if (is_descriptor && result->offset % p->limits.minStorageBufferOffsetAlignment) {
        return fail(p, INVALID_ARGUMENT, "expected an offset that is a multiple of %" PRIu64 ", got %" PRIu64,
                    (uint64_t)p->limits.minStorageBufferOffsetAlignment, (uint64_t)result->offset);
    }
    if (is_descriptor && length > p->limits.maxStorageBufferRange) {
        return fail(p, RESOURCE_EXHAUSTED, "a kernel reads %" PRIu64 " bytes; the device binds %" PRIu32 " at most",
                    length, p->limits.maxStorageBufferRange);
    }
    return OK;
outside:
    return fail(p, OUT_OF_RANGE, "bytes %" PRIu64 " on do not lie within a buffer's %" PRIu64, wanted->offset, size);
}

/* All that follows waits for all that went before, and sees it. */
static void record_barrier(VkCommandBuffer target, bool is_last)
{
    const VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = is_last ? VK_ACCESS_HOST_READ_BIT
                                 : VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT
                | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT,
    };
    const VkPipelineStageFlags following = is_last ? VK_PIPELINE_STAGE_HOST_BIT
                                                   : work | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    vkCmdPipelineBarrier(target, work, following, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static int record_dispatch(NAME_program *p, const commands *source, const command *each, const binding *table,
                           recording *target)
{
    const pipeline_source *run = each->pipeline->source;
    VkDescriptorSet sets[MAX_SETS];
    VkDescriptorBufferInfo infos[MAX_BINDINGS];
    VkWriteDescriptorSet writes[MAX_BINDINGS];
    int status = OK;
    if (run->set_count) {
        const VkDescriptorSetAllocateInfo allocate = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = target->pool,
            .descriptorSetCount = run->set_count,
            .pSetLayouts = each->pipeline->sets,
        };
        TRY(check(p, vkAllocateDescriptorSets(p->device, &allocate, sets), "vkAllocateDescriptorSets"));
    }
    for (uint32_t index = 0; index < run->binding_count; index++) {
        TRY(resolve(p, &source->bindings[each->first_binding + index], table, true, &infos[index]));
        writes[index] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = sets[run->bindings[index].set],
            .dstBinding = run->bindings[index].binding,
            .descriptorCount = 1,
            .descriptorType = (VkDescriptorType)run->bindings[index].type,
            .pBufferInfo = &infos[index],
        };
    }
    vkUpdateDescriptorSets(p->device, run->binding_count, writes, 0, NULL);
    vkCmdBindPipeline(target->handle, VK_PIPELINE_BIND_POINT_COMPUTE, each->pipeline->handle);
    if (run->set_count) {
        vkCmdBindDescriptorSets(target->handle, VK_PIPELINE_BIND_POINT_COMPUTE, each->pipeline->layout, 0,
                                run->set_count, sets, 0, NULL);
    }
    if (each->constant_count) {
        vkCmdPushConstants(target->handle, each->pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           4 * each->constant_count, &source->constants[each->first_constant]);
    }
    if (each->operation == DISPATCH_INDIRECT) {
        VkDescriptorBufferInfo counts;
        TRY(resolve(p, &source->bindings[each->first_binding + run->binding_count], table, false, &counts));
        vkCmdDispatchIndirect(target->handle, counts.buffer, counts.offset);
    } else {
        vkCmdDispatch(target->handle, each->counts[0], each->counts[1], each->counts[2]);
    }
done:
    return status;
}

static int record_copy(NAME_program *p, const commands *source, const command *each, const binding *table,
                       recording *target)
{
    VkDescriptorBufferInfo from, to;
    int status = resolve(p, &source->bindings[each->first_binding], table, false, &from);
    if (status == OK) status = resolve(p, &source->bindings[each->first_binding + 1], table, false, &to);
    if (status != OK || !to.range) return status;
    const VkBufferCopy region = {.srcOffset = from.offset, .dstOffset = to.offset, .size = to.range};
    if (from.range < to.range) return fail(p, OUT_OF_RANGE, "a copy reads less than it writes");
    if (from.buffer == to.buffer && from.offset == to.offset) return OK; /* a result in the memory of its argument */
    vkCmdCopyBuffer(target->handle, from.buffer, to.buffer, 1, &region);
    return OK;
}

static int record_fill(NAME_program *p, const commands *source, const command *each, const binding *table,
                       recording *target)
{
    VkDescriptorBufferInfo to;
    buffer *staged = NULL;
    int status = resolve(p, &source->bindings[each->first_binding], table, false, &to);
    if (status != OK || !to.range) return status;
    uint32_t pattern = each->pattern;
    if (each->pattern_size == 1) pattern = (pattern & 0xFF) * 0x01010101u;
    if (each->pattern_size == 2) pattern = (pattern & 0xFFFF) * 0x00010001u;
    if (to.offset % 4 == 0 && to.range % 4 == 0) {
        vkCmdFillBuffer(target->handle, to.buffer, to.offset, to.range, pattern);
        return OK;
    }
    /* Vulkan fills whole words: other ranges are copied from host memory, which the recording keeps. */
    TRY(buffer_new(p, to.range, true, &staged));
    TRY(wait_until(p, staged->last_use));
    for (uint64_t index = 0; index < to.range; index++) staged->mapped[index] = (uint8_t)(pattern >> 8 * (index % 4));
    TRY(buffer_sync(p, staged, false));
    const VkBufferCopy region = {.dstOffset = to.offset, .size = to.range};
    vkCmdCopyBuffer(target->handle, staged->handle, to.buffer, 1, &region);
    staged->header.next = target->staged;
    target->staged = &staged->header;
    staged = NULL;
done:
    release(p, staged);
    return status;
}

static int record(NAME_program *p, const commands *source, const binding *table, recording *target)
{
    int status = OK;
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    TRY(check(p, vkBeginCommandBuffer(target->handle, &begin), "vkBeginCommandBuffer"));
    record_barrier(target->handle, false);
    for (uint32_t index = 0; index < source->command_count; index++) {
        const command *each = &source->commands[index];
        switch (each->operation) {
        case DISPATCH:
        case DISPATCH_INDIRECT: TRY(record_dispatch(p, source, each, table, target)); break;
        case COPY: TRY(record_copy(p, source, each, table, target)); break;
        case FILL: TRY(record_fill(p, source, each, table, target)); break;
        case BARRIER: record_barrier(target->handle, false); break;
        }
    }
    record_barrier(target->handle, true);
    TRY(check(p, vkEndCommandBuffer(target->handle), "vkEndCommandBuffer"));
done:
    return status;
}

static int recording_new(NAME_program *p, const commands *source, recording **result)
{
    int status = OK;
    uint32_t descriptors = 0;
    recording *made = calloc(1, sizeof *made);
    if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    made->table = calloc(source->slot_count ? source->slot_count : 1, sizeof *made->table);
    if (!made->table) {
        status = fail(p, RESOURCE_EXHAUSTED, "out of memory");
        goto done;
    }
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = p->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    TRY(check(p, vkAllocateCommandBuffers(p->device, &allocate, &made->handle), "vkAllocateCommandBuffers"));
    for (uint32_t index = 0; index < source->command_count; index++) {
        const command *each = &source->commands[index];
        if (each->pipeline) descriptors += each->pipeline->source->binding_count;
    }
    if (source->set_count) {
        const VkDescriptorPoolSize sizes[] = {
            {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptors ? descriptors : 1},
            {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, descriptors ? descriptors : 1},
        };
        const VkDescriptorPoolCreateInfo pool = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = source->set_count,
            .poolSizeCount = HAS_UNIFORMS ? 2 : 1,
            .pPoolSizes = sizes,
        };
        TRY(check(p, vkCreateDescriptorPool(p->device, &pool, NULL, &made->pool), "vkCreateDescriptorPool"));
    }
    *result = made;
    made = NULL;
done:
    recording_free(p, made);
    return status;
}

static bound bound_of(const binding *entry)
{
    const buffer *found = entry->buffer;
    if (!found) return (bound){0};
    const uint64_t size = entry->offset <= found->size ? found->size - entry->offset : 0;
    return (bound){found->serial, found->offset + entry->offset, entry->length < size ? entry->length : size};
}

static bool is_recorded_for(const recording *known, const binding *table, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        const bound old = known->table[index], new = bound_of(&table[index]);
        if (old.serial != new.serial || old.offset != new.offset || old.length != new.length) return false;
    }
    return true;
}

/* The recording for a table of buffers: a known one, or the one that ran longest ago, recorded anew. */
static int recording_find(NAME_program *p, commands *source, const binding *table, recording **result)
{
    int status = OK;
    recording **place = &source->recordings[0];
    for (uint32_t index = 0; index < MAX_RECORDINGS; index++) {
        recording **each = &source->recordings[index];
        if (*each && is_recorded_for(*each, table, source->slot_count)) {
            *result = *each;
            return OK;
        }
        if (*place && (!*each || (*each)->turn < (*place)->turn)) place = each;
    }
    if (*place) {
        TRY(wait_until(p, (*place)->value));
        staged_release(p, *place);
        if ((*place)->pool) vkResetDescriptorPool(p->device, (*place)->pool, 0);
    } else {
        TRY(recording_new(p, source, place));
    }
    status = record(p, source, table, *place);
    if (status != OK) {
        recording_free(p, *place);
        *place = NULL;
        goto done;
    }
    for (uint32_t index = 0; index < source->slot_count; index++) {
        (*place)->table[index] = bound_of(&table[index]);
    }
    *result = *place;
done:
    return status;
}

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
