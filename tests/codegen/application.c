/* An application of a C program: what the header promises, on a device of the program's own and on its own one. */
#include "program.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: expected %s; %s\n", __LINE__, #condition, program ? program_error(program) : "");         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const float left[4] = {1, 2, 3, 4}, right[4] = {5, 6, 7, 8};

static bool is_product(const float *found)
{
    for (int index = 0; index < 4; index++) {
        if (found[index] != left[index] * right[index]) return false;
    }
    return true;
}

static program_buffer *filled(program_program *program, const float *data)
{
    program_buffer *made = NULL;
    EXPECT(program_buffer_create(program, 16, &made) == PROGRAM_OK);
    EXPECT(program_buffer_write(program, made, 0, data, 16) == PROGRAM_OK);
    return made;
}

static void host_memory(program_program *program)
{
    float inputs[2][4], output[4] = {0};
    memcpy(inputs[0], left, sizeof left);
    memcpy(inputs[1], right, sizeof right);
    const program_tensor given[] = {{.data = inputs[0]}, {.data = inputs[1]}};
    program_tensor results[] = {{.data = output}};
    EXPECT(program_mul(program, given, results) == PROGRAM_OK);
    EXPECT(is_product(output) && results[0].rank == 1 && results[0].shape[0] == 4);
    const uint32_t held = program_allocation_count(program);
    for (int call = 0; call < 50; call++) EXPECT(program_mul(program, given, results) == PROGRAM_OK);
    EXPECT(program_allocation_count(program) == held);
}

static void device_memory(program_program *program)
{
    float output[4] = {0};
    program_buffer *one = filled(program, left), *other = filled(program, right), *third = filled(program, left);
    const program_tensor given[] = {{.buffer = one}, {.buffer = other}};
    program_tensor results[] = {{.buffer = third}};
    EXPECT(program_mul(program, given, results) == PROGRAM_OK);
    const uint32_t held = program_allocation_count(program);
    for (int call = 0; call < 50; call++) EXPECT(program_mul(program, given, results) == PROGRAM_OK);
    EXPECT(program_allocation_count(program) == held);
    EXPECT(program_buffer_read(program, third, 0, output, sizeof output) == PROGRAM_OK && is_product(output));
    /* A product may take the place of a factor. */
    const program_tensor factors[] = {{.buffer = third}, {.buffer = other}};
    EXPECT(program_buffer_write(program, third, 0, left, sizeof left) == PROGRAM_OK);
    EXPECT(program_mul(program, factors, results) == PROGRAM_OK);
    EXPECT(program_buffer_read(program, third, 0, output, sizeof output) == PROGRAM_OK && is_product(output));
    /* Results in new buffers are the caller's. */
    program_tensor fresh[] = {{0}};
    EXPECT(program_mul(program, given, fresh) == PROGRAM_OK && fresh[0].buffer);
    EXPECT(program_buffer_size(fresh[0].buffer) == 16);
    EXPECT(program_buffer_read(program, fresh[0].buffer, 0, output, sizeof output) == PROGRAM_OK && is_product(output));
    program_buffer_destroy(program, fresh[0].buffer);
    program_buffer_destroy(program, one);
    program_buffer_destroy(program, other);
    program_buffer_destroy(program, third);
}

static void unknown_lengths(program_program *program)
{
    const int64_t lengths[] = {5, 300, 0, 1, 5};
    float *data = calloc(300, sizeof *data), *found = calloc(300, sizeof *found);
    for (int index = 0; index < 300; index++) data[index] = (float)index;
    for (size_t call = 0; call < sizeof lengths / sizeof *lengths; call++) {
        const int64_t length = lengths[call];
        const program_tensor given[] = {{.data = data, .rank = 1, .shape = {length}}};
        program_tensor results[] = {{.data = found, .size = 300 * sizeof *found}};
        EXPECT(program_twice(program, given, results) == PROGRAM_OK);
        EXPECT(results[0].rank == 1 && results[0].shape[0] == length);
        for (int64_t index = 0; index < length; index++) EXPECT(found[index] == 2 * data[index]);
        program_tensor small[] = {{.data = found, .size = 4}};
        EXPECT((program_twice(program, given, small) == PROGRAM_OK) == (length < 2));
        /* An output whose shape the caller knows is written in place. */
        program_tensor known[] = {{.data = found, .rank = 1, .shape = {length}}};
        EXPECT(program_twice(program, given, known) == PROGRAM_OK);
    }
    free(data);
    free(found);
}

static void decisions_of_the_device(program_program *program)
{
    for (int call = 0; call < 4; call++) {
        float x = (float)(call + 2), root = 0;
        int32_t rounds = 0;
        const program_tensor given[] = {{.data = &x}};
        program_tensor results[] = {{.data = &root}, {.data = &rounds}};
        EXPECT(program_root(program, given, results) == PROGRAM_OK);
        EXPECT(fabsf(root * root - x) < 1e-3f && rounds > 0);
    }
}

static void refusals(program_program *program)
{
    float memory[5] = {0};
    program_buffer *one = filled(program, left);
    const program_tensor good[] = {{.buffer = one}, {.data = memory}};
    const program_tensor bad_rank[] = {{.data = memory, .rank = 2, .shape = {2, 2}}, {.data = memory}};
    const program_tensor bad_length[] = {{.data = memory, .rank = 1, .shape = {5}}, {.data = memory}};
    const program_tensor none[] = {{.data = memory}, {0}};
    const program_tensor behind[] = {{.buffer = one, .offset = 4096}, {.data = memory}};
    const program_tensor no_length[] = {{.data = memory}};
    program_tensor results[] = {{.data = memory, .size = 15}}, overlapping[] = {{.buffer = one}};
    program_buffer *imported = NULL;
    EXPECT(program_reversed(program, good, overlapping) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(strstr(program_error(program), "memory of its own"));
    EXPECT(program_mul(program, good, results) == PROGRAM_OUT_OF_RANGE);
    results[0].size = 0;
    EXPECT(program_mul(program, bad_rank, results) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(strstr(program_error(program), "expected the shape [4], got [2x2]"));
    EXPECT(program_mul(program, bad_length, results) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(program_mul(program, none, results) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(strstr(program_error(program), "expected data or a buffer"));
    EXPECT(program_mul(program, behind, results) == PROGRAM_OUT_OF_RANGE);
    EXPECT(program_twice(program, no_length, results) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(program_buffer_read(program, one, 8, memory, 16) == PROGRAM_OUT_OF_RANGE);
    EXPECT(program_buffer_import(program, VK_NULL_HANDLE, 0, 16, &imported) == PROGRAM_INVALID_ARGUMENT && !imported);
    EXPECT(program_mul_async(program, good, overlapping, NULL, 0, NULL, 0) == PROGRAM_INVALID_ARGUMENT);
    EXPECT(!strcmp(program_status_name(PROGRAM_OUT_OF_RANGE), "OUT_OF_RANGE"));
    EXPECT(program_mul(program, good, results) == PROGRAM_OK);
    program_buffer_destroy(program, one);
}

/* -- the application's own device ---------------------------------------------------------------------- */

typedef struct vulkan {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    VkBuffer buffer;
    VkDeviceMemory memory;
    float *mapped;
} vulkan;

static VkSemaphore timeline(VkDevice device)
{
    VkSemaphore made;
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    return vkCreateSemaphore(device, &info, NULL, &made) == VK_SUCCESS ? made : VK_NULL_HANDLE;
}

static bool open_vulkan(vulkan *v)
{
    uint32_t one = 1;
    const float priority = 1;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = VK_API_VERSION_1_2,
    };
    const VkInstanceCreateInfo instance = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkPhysicalDeviceVulkan12Features features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .timelineSemaphore = VK_TRUE,
    };
    const VkDeviceCreateInfo device = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };
    const VkBufferCreateInfo buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 4096,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    if (vkCreateInstance(&instance, NULL, &v->instance)) return false;
    if (vkEnumeratePhysicalDevices(v->instance, &one, &v->physical_device) < 0 || !one) return false;
    if (vkCreateDevice(v->physical_device, &device, NULL, &v->device)) return false;
    vkGetDeviceQueue(v->device, 0, 0, &v->queue);
    if (vkCreateBuffer(v->device, &buffer, NULL, &v->buffer)) return false;
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties memory;
    vkGetBufferMemoryRequirements(v->device, v->buffer, &needs);
    vkGetPhysicalDeviceMemoryProperties(v->physical_device, &memory);
    for (uint32_t index = 0; index < memory.memoryTypeCount; index++) {
        const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        if (!(needs.memoryTypeBits >> index & 1)) continue;
        if ((memory.memoryTypes[index].propertyFlags & wanted) != wanted) continue;
        const VkMemoryAllocateInfo allocate = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
            .allocationSize = needs.size,
            .memoryTypeIndex = index,
        };
        void *mapped;
        if (vkAllocateMemory(v->device, &allocate, NULL, &v->memory)) return false;
        if (vkBindBufferMemory(v->device, v->buffer, v->memory, 0)) return false;
        if (vkMapMemory(v->device, v->memory, 0, VK_WHOLE_SIZE, 0, &mapped)) return false;
        v->mapped = mapped;
        return true;
    }
    return false;
}

static void own_device(void)
{
    program_program *program = NULL;
    vulkan v = {0};
    EXPECT(open_vulkan(&v));
    const program_options options = {
        .instance = v.instance,
        .physical_device = v.physical_device,
        .device = v.device,
        .queue = v.queue,
    };
    EXPECT(program_create(&options, &program) == PROGRAM_OK);
    host_memory(program);
    /* Ranges of the application's buffer, and calls one behind the other by its semaphores. */
    program_buffer *parts[4];
    for (uint64_t index = 0; index < 4; index++) {
        EXPECT(program_buffer_import(program, v.buffer, 1024 * index, 1024, &parts[index]) == PROGRAM_OK);
    }
    const VkSemaphore semaphore = timeline(v.device);
    EXPECT(semaphore);
    const program_tensor first[] = {{.buffer = parts[0]}, {.buffer = parts[1]}};
    const program_tensor second[] = {{.buffer = parts[2]}, {.buffer = parts[1]}};
    program_tensor middle[] = {{.buffer = parts[2]}}, last[] = {{.buffer = parts[3]}};
    const program_semaphore start = {semaphore, 1}, between = {semaphore, 2}, end = {semaphore, 3};
    EXPECT(program_mul_async(program, first, middle, &start, 1, &between, 1) == PROGRAM_OK);
    EXPECT(program_mul_async(program, second, last, &between, 1, &end, 1) == PROGRAM_OK);
    /* Nothing has begun: the host writes what both calls read, and lets them go. */
    memcpy(v.mapped, left, sizeof left);
    memcpy(v.mapped + 256, right, sizeof right);
    const VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = semaphore,
        .value = 1,
    };
    EXPECT(vkSignalSemaphore(v.device, &signal) == VK_SUCCESS);
    const VkSemaphoreWaitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &semaphore,
        .pValues = &end.value,
    };
    EXPECT(vkWaitSemaphores(v.device, &wait, 10000000000u) == VK_SUCCESS);
    EXPECT(is_product(v.mapped + 512));
    for (int index = 0; index < 4; index++) EXPECT(v.mapped[768 + index] == left[index] * right[index] * right[index]);
    for (int index = 0; index < 4; index++) program_buffer_destroy(program, parts[index]);
    program_destroy(program);
    vkDestroySemaphore(v.device, semaphore, NULL);
    vkDestroyBuffer(v.device, v.buffer, NULL);
    vkFreeMemory(v.device, v.memory, NULL);
    vkDestroyDevice(v.device, NULL);
    vkDestroyInstance(v.instance, NULL);
}

int main(int argc, char **argv)
{
    program_program *program = NULL;
    const program_options nowhere = {.device_name = "no such device"};
    if (argc > 1 && !strcmp(argv[1], "device")) {
        own_device();
    } else {
        EXPECT(program_create(&nowhere, &program) == PROGRAM_UNAVAILABLE);
        EXPECT(strstr(program_error(program), "no such device"));
        program_destroy(program);
        EXPECT(program_create(NULL, &program) == PROGRAM_OK && program_device_name(program)[0]);
        host_memory(program);
        device_memory(program);
        if (argc == 1) {
            unknown_lengths(program);
            decisions_of_the_device(program);
        }
        refusals(program);
        program_destroy(program);
        if (argc > 1) own_device();
    }
    puts("as the header says");
    return 0;
}
