/* Where a binding lies: a range of a VkBuffer. For descriptors, of a type of theirs. */
static int resolve(NAME_program *p, const binding *wanted, const binding *table, const VkDescriptorType *descriptor,
                   VkDescriptorBufferInfo *result)
{
    const bool is_uniform = descriptor && *descriptor == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    const VkDeviceSize alignment = is_uniform ? p->limits.minUniformBufferOffsetAlignment
                                              : p->limits.minStorageBufferOffsetAlignment;
    const uint32_t most = is_uniform ? p->limits.maxUniformBufferRange : p->limits.maxStorageBufferRange;
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
    if (descriptor && length <= room) length = round_up(length ? length : 1, 4);
    if (wanted->offset > room || length > room - wanted->offset) goto outside;
    if (!descriptor && length > size - wanted->offset) goto outside;
    result->buffer = found->handle;
    result->offset = found->offset + offset;
    result->range = length;
    if (descriptor && result->offset % alignment) {
        return fail(p, INVALID_ARGUMENT, "expected an offset that is a multiple of %" PRIu64 ", got %" PRIu64,
                    (uint64_t)alignment, (uint64_t)result->offset);
    }
    if (descriptor && length > most) {
        return fail(p, RESOURCE_EXHAUSTED, "a kernel reads %" PRIu64 " bytes; the device binds %" PRIu32 " at most",
                    length, most);
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
        const VkDescriptorType type = (VkDescriptorType)run->bindings[index].type;
        TRY(resolve(p, &source->bindings[each->first_binding + index], table, &type, &infos[index]));
        writes[index] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = sets[run->bindings[index].set],
            .dstBinding = run->bindings[index].binding,
            .descriptorCount = 1,
            .descriptorType = type,
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
        TRY(resolve(p, &source->bindings[each->first_binding + run->binding_count], table, NULL, &counts));
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
    int status = resolve(p, &source->bindings[each->first_binding], table, NULL, &from);
    if (status == OK) status = resolve(p, &source->bindings[each->first_binding + 1], table, NULL, &to);
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
    int status = resolve(p, &source->bindings[each->first_binding], table, NULL, &to);
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
