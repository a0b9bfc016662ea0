/* A range of device memory. A part of another one has a parent. */
struct NAME_buffer {
    object header;
    VkBuffer handle;
    VkDeviceMemory memory; /* null if the application owns the buffer */
    uint64_t offset;       /* in the handle, bytes */
    uint64_t size;         /* bytes */
    uint64_t capacity;     /* bytes behind offset, at least size */
    uint64_t serial;       /* given once: tells recordings apart */
    uint64_t last_use;     /* point of the timeline after which the device is done with it */
    uint8_t *mapped;       /* its bytes, where the host sees them */
    NAME_buffer *parent;
    bool is_host;     /* memory that the host reads and writes fast */
    bool is_coherent; /* host and device see each other's writes without flushes */
};

typedef NAME_buffer buffer;

enum { MAX_SPARE_BUFFERS = 64 };

static buffer *as_buffer(object *found)
{
    return (buffer *)(void *)found;
}

static uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static buffer *root_of(buffer *part)
{
    while (part->parent) part = part->parent;
    return part;
}

/* Memory types in the order in which they suit; returns how many there are. */
static uint32_t rank_memory_types(const NAME_program *p, uint32_t allowed, bool is_host, uint32_t order[32])
{
    uint32_t count = 0;
    for (int wanted = 3; wanted >= 0; wanted--) {
        for (uint32_t index = 0; index < p->memory.memoryTypeCount; index++) {
            const VkMemoryPropertyFlags flags = p->memory.memoryTypes[index].propertyFlags;
            int score;
            if (!(allowed >> index & 1) || flags & VK_MEMORY_PROPERTY_PROTECTED_BIT) continue;
            if (is_host) {
                if (!(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) continue;
                score = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? 2 : 0)
                    + (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT ? 1 : 0);
            } else {
                score = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? 3 : 0;
            }
            if (score == wanted) order[count++] = index;
        }
    }
    return count;
}

/* Frees a buffer that the device is done with. */
static void buffer_free(NAME_program *p, buffer *unused)
{
    if (unused->memory) {
        vkDestroyBuffer(p->device, unused->handle, NULL);
        vkFreeMemory(p->device, unused->memory, NULL);
        p->allocation_count--;
    }
    free(unused);
}

/* Frees kept buffers until there are at most so many. */
static void trim(NAME_program *p, uint32_t most)
{
    while (p->spare_buffer_count > most) {
        object **oldest = &p->spare_buffers;
        for (object **place = oldest; *place; place = &(*place)->next) {
            if (as_buffer(*place)->last_use < as_buffer(*oldest)->last_use) oldest = place;
        }
        buffer *unused = as_buffer(*oldest);
        if (!p->is_lost && wait_until(p, unused->last_use) != OK) return;
        *oldest = unused->header.next;
        p->spare_buffer_count--;
        buffer_free(p, unused);
    }
}

/* Keeps a buffer for the next one that asks for as much. The queue runs in order, so the device may still use it. */
static void buffer_destroy(NAME_program *p, object *unused)
{
    buffer *found = as_buffer(unused);
    if (found->parent || !found->memory) {
        if (found->parent) release(p, found->parent);
        object_keep(&p->spare_parts, unused);
        return;
    }
    object_keep(&p->spare_buffers, unused);
    p->spare_buffer_count++;
    trim(p, MAX_SPARE_BUFFERS);
}

static int buffer_allocate(NAME_program *p, buffer *made)
{
    int status = OK;
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = made->capacity,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
            | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    TRY(check(p, vkCreateBuffer(p->device, &info, NULL, &made->handle), "vkCreateBuffer"));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(p->device, made->handle, &needs);
    uint32_t order[32];
    const uint32_t count = rank_memory_types(p, needs.memoryTypeBits, made->is_host, order);
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    uint32_t type = 0;
    for (uint32_t attempt = 0; attempt < 2 && result != VK_SUCCESS; attempt++) {
        if (attempt) trim(p, 0);
        for (uint32_t index = 0; index < count && result != VK_SUCCESS; index++) {
            type = order[index];
            const VkMemoryAllocateInfo memory = {
                .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                .allocationSize = needs.size,
                .memoryTypeIndex = type,
            };
            result = vkAllocateMemory(p->device, &memory, NULL, &made->memory);
        }
    }
    if (result != VK_SUCCESS) {
        made->memory = VK_NULL_HANDLE;
        return fail(p, RESOURCE_EXHAUSTED, "no memory for a buffer of %" PRIu64 " bytes", made->capacity);
    }
    p->allocation_count++;
    TRY(check(p, vkBindBufferMemory(p->device, made->handle, made->memory, 0), "vkBindBufferMemory"));
    const VkMemoryPropertyFlags flags = p->memory.memoryTypes[type].propertyFlags;
    made->is_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {
        void *mapped = NULL;
        TRY(check(p, vkMapMemory(p->device, made->memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory"));
        made->mapped = mapped;
    }
done:
    return status;
}

/* A buffer with undefined contents: a kept one that is not more than twice as large, or a new one. */
static int buffer_new(NAME_program *p, uint64_t size, bool is_host, buffer **result)
{
    if (size > (uint64_t)INT64_MAX / 4) return fail(p, RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " bytes", size);
    const uint64_t capacity = round_up(size ? size : 1, 256);
    object **best = NULL;
    for (object **place = &p->spare_buffers; *place; place = &(*place)->next) {
        const buffer *found = as_buffer(*place), *known = best ? as_buffer(*best) : NULL;
        if (found->is_host != is_host || found->capacity < capacity || found->capacity / 2 > capacity) continue;
        /* The first of equals, so that equal calls get equal buffers and find their recordings again. */
        if (!known || found->capacity < known->capacity
            || (found->capacity == known->capacity && found->serial < known->serial)) {
            best = place;
        }
    }
    buffer *made;
    if (best) {
        made = as_buffer(*best);
        *best = made->header.next;
        p->spare_buffer_count--;
    } else {
        made = calloc(1, sizeof *made);
        if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
        made->capacity = capacity;
        made->is_host = is_host;
        made->serial = ++p->serial;
        made->header.destroy = buffer_destroy;
        int status = buffer_allocate(p, made);
        if (status != OK) {
            if (made->memory) {
                buffer_free(p, made);
            } else {
                if (made->handle) vkDestroyBuffer(p->device, made->handle, NULL);
                free(made);
            }
            return status;
        }
    }
    made->header.references = 1;
    made->header.next = NULL;
    made->size = size;
    REPLACE(*result, made);
    return OK;
}

/* A part of a buffer; all that follows for a size of -1. */
static int buffer_part(NAME_program *p, buffer *whole, uint64_t offset, uint64_t size, buffer **result)
{
    if (offset > whole->size || (size != UINT64_MAX && size > whole->size - offset)) {
        return fail(p, OUT_OF_RANGE,
                    "bytes %" PRIu64 " to %" PRIu64 " do not lie within a buffer of %" PRIu64 " bytes", offset,
                    offset + size, whole->size);
    }
    if (size == UINT64_MAX) size = whole->size - offset;
    if (!offset && size == whole->size) {
        ASSIGN(*result, whole);
        return OK;
    }
    object *made = NULL;
    int status = object_new(p, &p->spare_parts, sizeof(buffer), buffer_destroy, &made);
    if (status != OK) return status;
    buffer *part = as_buffer(made);
    buffer *root = root_of(whole);
    part->handle = root->handle;
    part->offset = whole->offset + offset;
    part->size = size;
    part->capacity = whole->capacity - offset;
    part->serial = root->serial;
    part->parent = retain(root);
    REPLACE(*result, part);
    return OK;
}

/* Makes the host's writes known to the device, or the device's to the host. */
static int buffer_sync(NAME_program *p, const buffer *root, bool is_read)
{
    if (root->is_coherent) return OK;
    const VkMappedMemoryRange range = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = root->memory,
        .size = VK_WHOLE_SIZE,
    };
    return is_read ? check(p, vkInvalidateMappedMemoryRanges(p->device, 1, &range), "vkInvalidateMappedMemoryRanges")
                   : check(p, vkFlushMappedMemoryRanges(p->device, 1, &range), "vkFlushMappedMemoryRanges");
}

static int buffer_check_range(NAME_program *p, const buffer *target, uint64_t offset, uint64_t size)
{
    if (offset <= target->size && size <= target->size - offset) return OK;
    return fail(p, OUT_OF_RANGE, "%" PRIu64 " bytes at %" PRIu64 " do not lie within a buffer of %" PRIu64 " bytes",
                size, offset, target->size);
}

/* Writes bytes once the device is done with the buffer. */
static int buffer_write(NAME_program *p, buffer *target, uint64_t offset, const void *data, uint64_t size)
{
    int status = OK;
    buffer *staged = NULL;
    TRY(buffer_check_range(p, target, offset, size));
    if (!size) return OK;
    buffer *root = root_of(target);
    if (root->mapped) {
        TRY(wait_until(p, root->last_use));
        memcpy(root->mapped + target->offset + offset, data, (size_t)size);
        TRY(buffer_sync(p, root, false));
    } else {
        TRY(buffer_new(p, size, true, &staged));
        TRY(wait_until(p, staged->last_use));
        memcpy(staged->mapped, data, (size_t)size);
        TRY(buffer_sync(p, staged, false));
        TRY(transfer(p, staged, 0, target, offset, size, NULL, NULL));
    }
done:
    release(p, staged);
    return status;
}

/* Reads bytes once the device has written them. */
static int buffer_read(NAME_program *p, buffer *source, uint64_t offset, void *data, uint64_t size)
{
    int status = OK;
    buffer *staged = NULL;
    TRY(buffer_check_range(p, source, offset, size));
    if (!size) return OK;
    buffer *root = root_of(source);
    if (root->mapped) {
        TRY(wait_until(p, root->last_use));
        TRY(buffer_sync(p, root, true));
        memcpy(data, root->mapped + source->offset + offset, (size_t)size);
    } else {
        TRY(buffer_new(p, size, true, &staged));
        TRY(transfer(p, source, offset, staged, 0, size, NULL, NULL));
        TRY(wait_until(p, staged->last_use));
        TRY(buffer_sync(p, staged, true));
        memcpy(data, staged->mapped, (size_t)size);
    }
done:
    release(p, staged);
    return status;
}

static int buffer_load(NAME_program *p, buffer *source, uint64_t offset, int32_t size, int32_t *result)
{
    uint32_t word = 0;
    if (!source || size < 0 || size > 4) return fail(p, INVALID_ARGUMENT, "hal.buffer.load takes 0 to 4 bytes");
    int status = buffer_read(p, source, offset, &word, (uint64_t)size);
    *result = (int32_t)word;
    return status;
}

static int buffer_store(NAME_program *p, int32_t value, buffer *target, uint64_t offset, int32_t size)
{
    if (!target || size < 0 || size > 4) return fail(p, INVALID_ARGUMENT, "hal.buffer.store takes 0 to 4 bytes");
    return buffer_write(p, target, offset, &value, (uint64_t)size);
}

static int buffer_assert(NAME_program *p, const buffer *found, const char *name, uint64_t least)
{
    if (!found) return fail(p, INVALID_ARGUMENT, "%s: expected a buffer, got none", name);
    if (found->size >= least) return OK;
    return fail(p, INVALID_ARGUMENT, "%s: expected a buffer of at least %" PRIu64 " bytes, got %" PRIu64, name, least,
                found->size);
}

int NAME_buffer_create(NAME_program *program, uint64_t size, NAME_buffer **result)
{
    *result = NULL;
    return buffer_new(program, size, false, result);
}

int NAME_buffer_import(NAME_program *program, VkBuffer handle, uint64_t offset, uint64_t size, NAME_buffer **result)
{
    *result = NULL;
    if (!handle) return fail(program, INVALID_ARGUMENT, "expected a VkBuffer, got none");
    if (size % 4) return fail(program, INVALID_ARGUMENT, "expected a whole number of 4-byte words, got %" PRIu64, size);
    if (offset % program->limits.minStorageBufferOffsetAlignment) {
        return fail(program, INVALID_ARGUMENT, "expected an offset that is a multiple of %" PRIu64 ", got %" PRIu64,
                    (uint64_t)program->limits.minStorageBufferOffsetAlignment, offset);
    }
    object *made = NULL;
    int status = object_new(program, &program->spare_parts, sizeof(buffer), buffer_destroy, &made);
    if (status != OK) return status;
    buffer *imported = as_buffer(made);
    imported->handle = handle;
    imported->offset = offset;
    imported->size = imported->capacity = size;
    imported->serial = ++program->serial;
    *result = imported;
    return OK;
}

void NAME_buffer_destroy(NAME_program *program, NAME_buffer *unused)
{
    /* The application may free what it lent as soon as this returns. */
    if (unused && !unused->memory && !unused->parent && !program->is_lost) wait_until(program, unused->last_use);
    release(program, unused);
}

uint64_t NAME_buffer_size(const NAME_buffer *asked)
{
    return asked->size;
}

int NAME_buffer_write(NAME_program *program, NAME_buffer *target, uint64_t offset, const void *data, uint64_t size)
{
    return buffer_write(program, target, offset, data, size);
}

int NAME_buffer_read(NAME_program *program, NAME_buffer *source, uint64_t offset, void *data, uint64_t size)
{
    return buffer_read(program, source, offset, data, size);
}
