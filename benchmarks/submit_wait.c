/* What Vulkan itself costs, for benchmarks/submit_wait.py to compare pumice with.
 *
 *     submit_wait DEVICE_UUID QUEUE_FAMILY SHADER.spv BUFFERS PUSH_BYTES
 *
 * DEVICE_UUID is 32 hexadecimal digits. The shader's entry point is `main`; it takes BUFFERS storage buffers at set 0,
 * bindings 0..BUFFERS-1, of four floats each, and PUSH_BYTES of push constants. Everything is made once, at the start;
 * the program then prints `ready` and obeys one command a line until its input ends. Each command is answered with
 * one line of numbers:
 *
 *     prerecorded N       N times: submit and wait for one dispatch that was recorded beforehand
 *     rerecorded N        N times: reset, record one dispatch of other buffers than the last, submit and wait
 *     thousand N          N times: submit and wait for a thousand dispatches that were recorded beforehand
 *     timed N             N times: as `prerecorded`, between timestamps at the top and the bottom of the pipe; answers
 *                         with the nanoseconds between these, on the device (if the queue family has timestamps)
 *     timed-thousand N    the same with a thousand dispatches
 *     record N            N times: record a thousand dispatches, all of one descriptor set
 *     record-sets N       the same, with another descriptor set for each dispatch
 *     record-push N       the same as `record`, with other push constants for each dispatch (if the shader takes any)
 *     output S            dispatch on the buffers of set S (0..3) once; the floats of its last buffer
 *
 * The numbers are nanoseconds of CLOCK_MONOTONIC for each repetition, but for `output`. Waiting is for one timeline
 * semaphore, the only one a submission signals: pumice signals two, one of its own beside the user's, and that is part
 * of what it costs. Every command buffer ends with the full barrier that pumice records at the end of each.
 *
 * Each descriptor set has buffers of its own, where element i of buffer b of set s is 1 + i + 10 b + 100 s.
 */
#define _POSIX_C_SOURCE 200809L
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 4, MOST_BUFFERS = 8, MOST_PUSH_BYTES = 128, FLOATS = 4, MANY = 1000, MOST_SAMPLES = 1000000 };

/* Resolved by vkGetDeviceProcAddr, as pumice does: the loader's trampoline is no part of the comparison. */
#define DEVICE_FUNCTIONS(F)                                                                                            \
    F(vkAllocateCommandBuffers)                                                                                        \
    F(vkAllocateDescriptorSets)                                                                                        \
    F(vkAllocateMemory)                                                                                                \
    F(vkBeginCommandBuffer)                                                                                            \
    F(vkBindBufferMemory)                                                                                              \
    F(vkCmdBindDescriptorSets)                                                                                         \
    F(vkCmdBindPipeline)                                                                                               \
    F(vkCmdDispatch)                                                                                                   \
    F(vkCmdPipelineBarrier)                                                                                            \
    F(vkCmdPushConstants)                                                                                              \
    F(vkCmdResetQueryPool)                                                                                             \
    F(vkCmdWriteTimestamp)                                                                                             \
    F(vkCreateBuffer)                                                                                                  \
    F(vkCreateCommandPool)                                                                                             \
    F(vkCreateComputePipelines)                                                                                        \
    F(vkCreateDescriptorPool)                                                                                          \
    F(vkCreateDescriptorSetLayout)                                                                                     \
    F(vkCreatePipelineLayout)                                                                                          \
    F(vkCreateQueryPool)                                                                                               \
    F(vkCreateSemaphore)                                                                                               \
    F(vkCreateShaderModule)                                                                                            \
    F(vkDestroyBuffer)                                                                                                 \
    F(vkDestroyCommandPool)                                                                                            \
    F(vkDestroyDescriptorPool)                                                                                         \
    F(vkDestroyDescriptorSetLayout)                                                                                    \
    F(vkDestroyDevice)                                                                                                 \
    F(vkDestroyPipeline)                                                                                               \
    F(vkDestroyPipelineLayout)                                                                                         \
    F(vkDestroyQueryPool)                                                                                              \
    F(vkDestroySemaphore)                                                                                              \
    F(vkDestroyShaderModule)                                                                                           \
    F(vkDeviceWaitIdle)                                                                                                \
    F(vkEndCommandBuffer)                                                                                              \
    F(vkFreeMemory)                                                                                                    \
    F(vkGetBufferMemoryRequirements)                                                                                   \
    F(vkGetDeviceQueue)                                                                                                \
    F(vkGetQueryPoolResults)                                                                                           \
    F(vkMapMemory)                                                                                                     \
    F(vkQueueSubmit)                                                                                                   \
    F(vkResetCommandPool)                                                                                              \
    F(vkUpdateDescriptorSets)                                                                                          \
    F(vkWaitSemaphores)

#define INSTANCE_FUNCTIONS(F)                                                                                          \
    F(vkCreateDevice)                                                                                                  \
    F(vkDestroyInstance)                                                                                               \
    F(vkEnumeratePhysicalDevices)                                                                                      \
    F(vkGetDeviceProcAddr)                                                                                             \
    F(vkGetPhysicalDeviceMemoryProperties)                                                                             \
    F(vkGetPhysicalDeviceProperties2)

#define MEMBER(name) PFN_##name name;
static struct {
    INSTANCE_FUNCTIONS(MEMBER)
    DEVICE_FUNCTIONS(MEMBER)
} fn;
#undef MEMBER

/* The one function that is linked; all others are asked of it. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name);

/* A command pool with its one command buffer: reset together. */
struct commands {
    VkCommandPool pool;
    VkCommandBuffer handle;
};

struct bench {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    uint32_t buffers;
    uint32_t push_bytes;
    VkDeviceSize stride; /* bytes from one buffer's start to the next one's, all being ranges of one VkBuffer */
    VkBuffer buffer;
    VkDeviceMemory memory;
    char *mapped;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool descriptor_pool;
    VkDescriptorSet sets[SETS];
    VkPipelineLayout layout;
    VkShaderModule shader;
    VkPipeline pipeline;
    VkSemaphore timeline;
    uint64_t payload;
    VkTimelineSemaphoreSubmitInfo timeline_info;
    VkSubmitInfo submit_info;
    VkSemaphoreWaitInfo wait_info;
    struct commands prerecorded;
    struct commands rerecorded;
    struct commands thousand;
    struct commands recording;
    struct commands timed[2]; /* of one dispatch, and of a thousand */
    VkQueryPool queries;
    double ns_per_tick;
    uint32_t turn; /* which set the next re-recorded dispatch takes */
};

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("submit_wait: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void check(VkResult result, const char *what)
{
    if (result != VK_SUCCESS)
        fail("%s: the driver answered VkResult %d", what, (int)result);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* -- set-up ------------------------------------------------------------------------------------------------------- */

static void parse_uuid(const char *digits, uint8_t uuid[VK_UUID_SIZE])
{
    if (strlen(digits) != 2 * VK_UUID_SIZE || strspn(digits, "0123456789abcdefABCDEF") != 2 * VK_UUID_SIZE)
        fail("a device UUID has 32 hexadecimal digits, got %s", digits);
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        sscanf(digits + 2 * i, "%2" SCNx8, &uuid[i]);
}

static void open_device(struct bench *b, const uint8_t uuid[VK_UUID_SIZE])
{
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)vkGetInstanceProcAddr(NULL, "vkCreateInstance");
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "submit_wait",
        .apiVersion = VK_API_VERSION_1_2,
    };
    VkInstanceCreateInfo instance_info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    check(create(&instance_info, NULL, &b->instance), "creating a Vulkan instance");
#define RESOLVE(name)                                                                                                  \
    if (!(fn.name = (PFN_##name)vkGetInstanceProcAddr(b->instance, #name)))                                            \
        fail("the Vulkan loader does not offer %s", #name);
    INSTANCE_FUNCTIONS(RESOLVE)
#undef RESOLVE

    VkPhysicalDevice devices[32];
    uint32_t count = 32;
    VkResult result = fn.vkEnumeratePhysicalDevices(b->instance, &count, devices);
    if (result != VK_INCOMPLETE)
        check(result, "enumerating devices");
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    for (uint32_t i = 0; i < count && !b->physical; i++) {
        fn.vkGetPhysicalDeviceProperties2(devices[i], &properties);
        if (!memcmp(id.deviceUUID, uuid, VK_UUID_SIZE))
            b->physical = devices[i];
    }
    if (!b->physical)
        fail("none of the %u Vulkan device(s) has the UUID asked for", (unsigned)count);
    b->stride = properties.properties.limits.minStorageBufferOffsetAlignment;
    b->ns_per_tick = properties.properties.limits.timestampPeriod;
    if (b->stride < FLOATS * sizeof(float))
        b->stride = FLOATS * sizeof(float);

    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = b->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkPhysicalDeviceVulkan12Features features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .timelineSemaphore = VK_TRUE,
    };
    VkDeviceCreateInfo device_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue_info,
    };
    check(fn.vkCreateDevice(b->physical, &device_info, NULL, &b->device), "creating a device");
#define RESOLVE(name)                                                                                                  \
    if (!(fn.name = (PFN_##name)fn.vkGetDeviceProcAddr(b->device, #name)))                                             \
        fail("the Vulkan driver does not offer %s", #name);
    DEVICE_FUNCTIONS(RESOLVE)
#undef RESOLVE
    fn.vkGetDeviceQueue(b->device, b->family, 0, &b->queue);
}

/* Host-visible coherent memory, on the device if it has such. */
static uint32_t memory_type(const struct bench *b, uint32_t allowed)
{
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags wanted[] = {host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, host};
    VkPhysicalDeviceMemoryProperties memory;
    fn.vkGetPhysicalDeviceMemoryProperties(b->physical, &memory);
    for (int w = 0; w < 2; w++)
        for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
            if (allowed >> i & 1 && (memory.memoryTypes[i].propertyFlags & wanted[w]) == wanted[w])
                return i;
    fail("the device has no host-visible coherent memory for storage buffers");
    return 0;
}

static void make_buffers(struct bench *b)
{
    VkBufferCreateInfo buffer_info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = b->stride * b->buffers * SETS,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    check(fn.vkCreateBuffer(b->device, &buffer_info, NULL, &b->buffer), "creating a buffer");
    VkMemoryRequirements needs;
    fn.vkGetBufferMemoryRequirements(b->device, b->buffer, &needs);
    VkMemoryAllocateInfo memory_info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.size,
        .memoryTypeIndex = memory_type(b, needs.memoryTypeBits),
    };
    check(fn.vkAllocateMemory(b->device, &memory_info, NULL, &b->memory), "allocating memory");
    check(fn.vkBindBufferMemory(b->device, b->buffer, b->memory, 0), "binding memory");
    check(fn.vkMapMemory(b->device, b->memory, 0, VK_WHOLE_SIZE, 0, (void **)&b->mapped), "mapping memory");
    for (uint32_t s = 0; s < SETS; s++)
        for (uint32_t n = 0; n < b->buffers; n++)
            for (uint32_t i = 0; i < FLOATS; i++)
                ((float *)(b->mapped + (s * b->buffers + n) * b->stride))[i] = 1 + i + 10.0f * n + 100.0f * s;
}

static void make_sets(struct bench *b)
{
    VkDescriptorSetLayoutBinding bindings[MOST_BUFFERS];
    for (uint32_t n = 0; n < b->buffers; n++)
        bindings[n] = (VkDescriptorSetLayoutBinding){
            .binding = n,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    VkDescriptorSetLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = b->buffers,
        .pBindings = bindings,
    };
    check(fn.vkCreateDescriptorSetLayout(b->device, &layout_info, NULL, &b->set_layout),
          "creating a descriptor set layout");
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, b->buffers * SETS};
    VkDescriptorPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = SETS,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    check(fn.vkCreateDescriptorPool(b->device, &pool_info, NULL, &b->descriptor_pool), "creating a descriptor pool");
    VkDescriptorSetLayout layouts[SETS];
    for (int s = 0; s < SETS; s++)
        layouts[s] = b->set_layout;
    VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = b->descriptor_pool,
        .descriptorSetCount = SETS,
        .pSetLayouts = layouts,
    };
    check(fn.vkAllocateDescriptorSets(b->device, &allocate, b->sets), "allocating descriptor sets");
    for (uint32_t s = 0; s < SETS; s++) {
        VkDescriptorBufferInfo infos[MOST_BUFFERS];
        for (uint32_t n = 0; n < b->buffers; n++)
            infos[n] = (VkDescriptorBufferInfo){
                b->buffer, (s * b->buffers + n) * b->stride, FLOATS * sizeof(float)};
        /* Bindings of one type that follow each other may be written as if they were an array. */
        VkWriteDescriptorSet write = {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = b->sets[s],
            .descriptorCount = b->buffers,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = infos,
        };
        fn.vkUpdateDescriptorSets(b->device, 1, &write, 0, NULL);
    }
}

static uint32_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot read %s: %s", path, strerror(errno));
    size_t capacity = 1 << 20;
    uint32_t *data = malloc(capacity);
    *size = data ? fread(data, 1, capacity, file) : 0;
    if (*size == 0 || *size == capacity || *size % 4)
        fail("%s is not a SPIR-V module of less than %zu bytes", path, capacity);
    fclose(file);
    return data;
}

static void make_pipeline(struct bench *b, const char *path)
{
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, b->push_bytes};
    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &b->set_layout,
        .pushConstantRangeCount = b->push_bytes ? 1 : 0,
        .pPushConstantRanges = &range,
    };
    check(fn.vkCreatePipelineLayout(b->device, &layout_info, NULL, &b->layout), "creating a pipeline layout");
    size_t size;
    uint32_t *code = read_file(path, &size);
    VkShaderModuleCreateInfo shader_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = size,
        .pCode = code,
    };
    check(fn.vkCreateShaderModule(b->device, &shader_info, NULL, &b->shader), "creating a shader module");
    free(code);
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = b->shader,
            .pName = "main",
        },
        .layout = b->layout,
    };
    check(fn.vkCreateComputePipelines(b->device, VK_NULL_HANDLE, 1, &info, NULL, &b->pipeline), "creating a pipeline");
}

static void make_commands(const struct bench *b, struct commands *commands)
{
    VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = b->family,
    };
    check(fn.vkCreateCommandPool(b->device, &pool_info, NULL, &commands->pool), "creating a command pool");
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = commands->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    check(fn.vkAllocateCommandBuffers(b->device, &info, &commands->handle), "allocating a command buffer");
}

/* The structures of a submission and of a wait, whose pointers stay the same from one to the next. */
static void make_timeline(struct bench *b)
{
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    check(fn.vkCreateSemaphore(b->device, &info, NULL, &b->timeline), "creating a timeline semaphore");
    b->timeline_info = (VkTimelineSemaphoreSubmitInfo){
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &b->payload,
    };
    b->submit_info = (VkSubmitInfo){
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &b->timeline_info,
        .commandBufferCount = 1,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &b->timeline,
    };
    b->wait_info = (VkSemaphoreWaitInfo){
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &b->timeline,
        .pValues = &b->payload,
    };
}

/* -- what is measured --------------------------------------------------------------------------------------------- */

static void begin(VkCommandBuffer commands, VkCommandBufferUsageFlags flags)
{
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags};
    check(fn.vkBeginCommandBuffer(commands, &info), "beginning a command buffer");
}

static void bind_set(const struct bench *b, VkCommandBuffer commands, uint32_t set)
{
    fn.vkCmdBindDescriptorSets(
        commands, VK_PIPELINE_BIND_POINT_COMPUTE, b->layout, 0, 1, &b->sets[set], 0, NULL);
}

static void push(const struct bench *b, VkCommandBuffer commands, uint32_t value)
{
    uint32_t words[MOST_PUSH_BYTES / 4] = {value};
    fn.vkCmdPushConstants(commands, b->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, b->push_bytes, words);
}

static void bind_all(const struct bench *b, VkCommandBuffer commands, uint32_t set)
{
    fn.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, b->pipeline);
    bind_set(b, commands, set);
    if (b->push_bytes)
        push(b, commands, 0);
}

static void end(VkCommandBuffer commands)
{
    const VkPipelineStageFlags work = VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT |
                         VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT |
                         VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT,
    };
    fn.vkCmdPipelineBarrier(
        commands, work, work | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL,
        0, NULL);
    check(fn.vkEndCommandBuffer(commands), "ending a command buffer");
}

static void record_once(const struct bench *b, VkCommandBuffer commands, uint32_t set, uint32_t dispatches,
                        VkCommandBufferUsageFlags flags)
{
    begin(commands, flags);
    bind_all(b, commands, set);
    for (uint32_t i = 0; i < dispatches; i++)
        fn.vkCmdDispatch(commands, 1, 1, 1);
    end(commands);
}

static void submit_and_wait(struct bench *b, const struct commands *commands)
{
    b->payload++;
    b->submit_info.pCommandBuffers = &commands->handle;
    check(fn.vkQueueSubmit(b->queue, 1, &b->submit_info, VK_NULL_HANDLE), "submitting");
    check(fn.vkWaitSemaphores(b->device, &b->wait_info, UINT64_MAX), "waiting");
}

static int64_t time_prerecorded(struct bench *b)
{
    int64_t start = now();
    submit_and_wait(b, &b->prerecorded);
    return now() - start;
}

static int64_t time_rerecorded(struct bench *b)
{
    int64_t start = now();
    check(fn.vkResetCommandPool(b->device, b->rerecorded.pool, 0), "resetting a command pool");
    record_once(b, b->rerecorded.handle, b->turn, 1, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    submit_and_wait(b, &b->rerecorded);
    b->turn = (b->turn + 1) % SETS;
    return now() - start;
}

static int64_t time_thousand(struct bench *b)
{
    int64_t start = now();
    submit_and_wait(b, &b->thousand);
    return now() - start;
}

static void record_timed(const struct bench *b, VkCommandBuffer commands, uint32_t dispatches)
{
    begin(commands, 0);
    fn.vkCmdResetQueryPool(commands, b->queries, 0, 2);
    fn.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, b->queries, 0);
    bind_all(b, commands, 0);
    for (uint32_t i = 0; i < dispatches; i++)
        fn.vkCmdDispatch(commands, 1, 1, 1);
    fn.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->queries, 1);
    end(commands);
}

static void make_timed(struct bench *b)
{
    VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 2,
    };
    check(fn.vkCreateQueryPool(b->device, &info, NULL, &b->queries), "creating a query pool");
    for (int i = 0; i < 2; i++) {
        make_commands(b, &b->timed[i]);
        record_timed(b, b->timed[i].handle, i ? MANY : 1);
    }
}

static int64_t time_device(struct bench *b, int which)
{
    if (!b->queries)
        make_timed(b);
    submit_and_wait(b, &b->timed[which]);
    uint64_t ticks[2];
    check(fn.vkGetQueryPoolResults(b->device, b->queries, 0, 2, sizeof ticks, ticks, sizeof ticks[0],
                                   VK_QUERY_RESULT_64_BIT),
          "reading timestamps");
    return (int64_t)((double)(ticks[1] - ticks[0]) * b->ns_per_tick);
}

static int64_t time_timed(struct bench *b)
{
    return time_device(b, 0);
}

static int64_t time_timed_thousand(struct bench *b)
{
    return time_device(b, 1);
}

/* Recording is timed without its begin, end and reset: the question is what one more dispatch costs. */
static VkCommandBuffer begin_recording(struct bench *b)
{
    check(fn.vkResetCommandPool(b->device, b->recording.pool, 0), "resetting a command pool");
    begin(b->recording.handle, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    bind_all(b, b->recording.handle, 0);
    return b->recording.handle;
}

static int64_t time_record(struct bench *b)
{
    VkCommandBuffer commands = begin_recording(b);
    int64_t start = now();
    for (uint32_t i = 0; i < MANY; i++)
        fn.vkCmdDispatch(commands, 1, 1, 1);
    int64_t elapsed = now() - start;
    end(commands);
    return elapsed;
}

static int64_t time_record_sets(struct bench *b)
{
    VkCommandBuffer commands = begin_recording(b);
    int64_t start = now();
    for (uint32_t i = 0; i < MANY; i++) {
        bind_set(b, commands, i % 2);
        fn.vkCmdDispatch(commands, 1, 1, 1);
    }
    int64_t elapsed = now() - start;
    end(commands);
    return elapsed;
}

static int64_t time_record_push(struct bench *b)
{
    VkCommandBuffer commands = begin_recording(b);
    int64_t start = now();
    for (uint32_t i = 0; i < MANY; i++) {
        push(b, commands, i);
        fn.vkCmdDispatch(commands, 1, 1, 1);
    }
    int64_t elapsed = now() - start;
    end(commands);
    return elapsed;
}

/* -- commands ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t (*time)(struct bench *);
    int pushes;
} measurements[] = {
    {"prerecorded", time_prerecorded, 0}, {"rerecorded", time_rerecorded, 0}, {"thousand", time_thousand, 0},
    {"timed", time_timed, 0},             {"timed-thousand", time_timed_thousand, 0},
    {"record", time_record, 0},           {"record-sets", time_record_sets, 0}, {"record-push", time_record_push, 1},
};

static void print_output(struct bench *b, uint32_t set)
{
    check(fn.vkResetCommandPool(b->device, b->rerecorded.pool, 0), "resetting a command pool");
    record_once(b, b->rerecorded.handle, set, 1, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    submit_and_wait(b, &b->rerecorded);
    const float *values = (const float *)(b->mapped + ((set + 1) * b->buffers - 1) * b->stride);
    for (int i = 0; i < FLOATS; i++)
        printf("%.9g%c", (double)values[i], i + 1 < FLOATS ? ' ' : '\n');
}

static void obey(struct bench *b, const char *command, long number, int64_t *samples)
{
    if (!strcmp(command, "output")) {
        if (number < 0 || number >= SETS)
            fail("output takes a set from 0 to %d, got %ld", SETS - 1, number);
        print_output(b, (uint32_t)number);
        return;
    }
    if (number < 1 || number > MOST_SAMPLES)
        fail("%s takes a count from 1 to %d, got %ld", command, MOST_SAMPLES, number);
    for (size_t m = 0; m < sizeof measurements / sizeof *measurements; m++) {
        if (strcmp(command, measurements[m].name))
            continue;
        if (measurements[m].pushes && !b->push_bytes)
            fail("%s needs a shader with push constants", command);
        for (long i = 0; i < number; i++)
            samples[i] = measurements[m].time(b);
        for (long i = 0; i < number; i++)
            printf("%" PRId64 "%c", samples[i], i + 1 < number ? ' ' : '\n');
        return;
    }
    fail("unknown command %s", command);
}

static uint32_t parse_count(const char *text, const char *what, unsigned long least, unsigned long most)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);
    if (!*text || *rest || value < least || value > most)
        fail("%s is a number from %lu to %lu, got %s", what, least, most, text);
    return (uint32_t)value;
}

static void close_all(struct bench *b)
{
    struct commands *all[] = {&b->prerecorded, &b->rerecorded, &b->thousand, &b->recording};
    fn.vkDeviceWaitIdle(b->device);
    for (int i = 0; i < 4; i++)
        fn.vkDestroyCommandPool(b->device, all[i]->pool, NULL);
    if (b->queries) {
        fn.vkDestroyCommandPool(b->device, b->timed[0].pool, NULL);
        fn.vkDestroyCommandPool(b->device, b->timed[1].pool, NULL);
        fn.vkDestroyQueryPool(b->device, b->queries, NULL);
    }
    fn.vkDestroySemaphore(b->device, b->timeline, NULL);
    fn.vkDestroyPipeline(b->device, b->pipeline, NULL);
    fn.vkDestroyShaderModule(b->device, b->shader, NULL);
    fn.vkDestroyPipelineLayout(b->device, b->layout, NULL);
    fn.vkDestroyDescriptorPool(b->device, b->descriptor_pool, NULL);
    fn.vkDestroyDescriptorSetLayout(b->device, b->set_layout, NULL);
    fn.vkDestroyBuffer(b->device, b->buffer, NULL);
    fn.vkFreeMemory(b->device, b->memory, NULL);
    fn.vkDestroyDevice(b->device, NULL);
    fn.vkDestroyInstance(b->instance, NULL);
}

static struct bench b;

static void open_all(int argc, char **argv)
{
    if (argc != 6)
        fail("usage: submit_wait DEVICE_UUID QUEUE_FAMILY SHADER.spv BUFFERS PUSH_BYTES");
    uint8_t uuid[VK_UUID_SIZE];
    parse_uuid(argv[1], uuid);
    b.family = parse_count(argv[2], "QUEUE_FAMILY", 0, 63);
    b.buffers = parse_count(argv[4], "BUFFERS", 1, MOST_BUFFERS);
    b.push_bytes = parse_count(argv[5], "PUSH_BYTES", 0, MOST_PUSH_BYTES);
    if (b.push_bytes % 4)
        fail("PUSH_BYTES is a multiple of 4, got %s", argv[5]);
    open_device(&b, uuid);
    make_buffers(&b);
    make_sets(&b);
    make_pipeline(&b, argv[3]);
    make_timeline(&b);
    make_commands(&b, &b.prerecorded);
    make_commands(&b, &b.rerecorded);
    make_commands(&b, &b.thousand);
    make_commands(&b, &b.recording);
    record_once(&b, b.prerecorded.handle, 0, 1, 0);
    record_once(&b, b.thousand.handle, 0, MANY, 0);
}

/* The two calls of `prerecorded`, for a process that makes them itself: _bare_worker.py, with this as a library. */
struct calls {
    void *submit, *queue, *submit_info, *wait, *device, *wait_info;
    uint64_t *payload; /* of both; one more for each submission */
};

void open_calls(int argc, char **argv, struct calls *calls)
{
    open_all(argc, argv);
    b.submit_info.pCommandBuffers = &b.prerecorded.handle;
    *calls = (struct calls){(void *)fn.vkQueueSubmit,    b.queue,  &b.submit_info,
                            (void *)fn.vkWaitSemaphores, b.device, &b.wait_info,
                            &b.payload};
}

int main(int argc, char **argv)
{
    int64_t *samples = malloc(MOST_SAMPLES * sizeof *samples);
    if (!samples)
        fail("no memory for samples");
    open_all(argc, argv);

    puts("ready");
    fflush(stdout);
    char command[32];
    long number;
    while (scanf("%31s %ld", command, &number) == 2) {
        obey(&b, command, number, samples);
        fflush(stdout);
    }
    free(samples);
    close_all(&b);
    return 0;
}
