/* A Vulkan layer that has a driver play another device: it answers for properties, features, extensions, memory and
 * queue families from a file of patches, which profile_layer.py writes from a recorded profile. Below it, a driver that
 * executes nothing (Khronos's mock ICD) serves. Timeline semaphores are kept here: such a driver keeps none.
 *
 * The file holds records: four 32-bit numbers (kind, sType, offset, size), then size bytes, padded to eight.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

enum { STRUCTURE = 1, MEMORY, QUEUE_FAMILIES, EXTENSIONS, TIME_DOMAINS, MATRICES };

struct record {
    uint32_t kind, type, offset, size;
    char data[];
};

static char *records, *records_end;
static PFN_vkGetInstanceProcAddr next_instance;
static PFN_GetPhysicalDeviceProcAddr next_physical;
static PFN_vkGetDeviceProcAddr next_device;
static VkInstance the_instance;

/* The driver's functions, which the loader tells only while the instance is made. */
#define OF_INSTANCE(each) \
    each(vkGetPhysicalDeviceProperties) each(vkGetPhysicalDeviceProperties2) each(vkGetPhysicalDeviceFeatures) \
    each(vkGetPhysicalDeviceFeatures2) each(vkGetPhysicalDeviceMemoryProperties2) \
    each(vkEnumerateDeviceExtensionProperties)
#define DECLARE(name) static PFN_##name next_##name;
#define RESOLVE(name) next_##name = (PFN_##name)next_instance(the_instance, #name);
OF_INSTANCE(DECLARE)

#define OF_DEVICE(each) each(vkCreateSemaphore) each(vkQueueSubmit) each(vkQueueSubmit2)
#define RESOLVE_OF_DEVICE(name) next_##name = (PFN_##name)next_device(*out, #name);
OF_DEVICE(DECLARE)

static struct record *after(struct record *record) {
    return (struct record *)(record->data + (record->size + 7) / 8 * 8);
}

static void load(void) {
    const char *path = getenv("PUMICE_TEST_PROFILE_PATCHES");
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    free(records);
    records = records_end = NULL;
    if (file == NULL) return;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *read = malloc(size > 0 ? size : 1);
    if (read != NULL && fread(read, 1, size, file) == (size_t)size) records = read, records_end = read + size;
    fclose(file);
}

static struct record *first(void) { return (struct record *)records; }

static int is_record(struct record *record) { return records != NULL && (char *)record < records_end; }

/* Applies the patches of a structure of one type, whose members start `skipped` bytes before `target`. */
static void patch(uint32_t type, char *target, uint32_t skipped) {
    for (struct record *each = first(); is_record(each); each = after(each))
        if (each->kind == STRUCTURE && each->type == type) memcpy(target + each->offset - skipped, each->data, each->size);
}

static void patch_chain(void *head) {
    for (VkBaseOutStructure *each = head; each != NULL; each = each->pNext) patch(each->sType, (char *)each, 0);
}

/* Gives an array as the two calls of Vulkan's enumerations do; 0 if the file has none of the kind. */
static int give(uint32_t kind, size_t stride, uint32_t *count, void *out, size_t out_stride, size_t out_offset,
                VkResult *result) {
    for (struct record *each = first(); is_record(each); each = after(each)) {
        if (each->kind != kind) continue;
        uint32_t total = each->size / stride;
        *result = VK_SUCCESS;
        if (out == NULL) {
            *count = total;
            return 1;
        }
        if (*count < total) *result = VK_INCOMPLETE;
        if (*count > total) *count = total;
        for (uint32_t i = 0; i < *count; i++)
            memcpy((char *)out + i * out_stride + out_offset, each->data + i * stride, stride);
        return 1;
    }
    return 0;
}

#define NEXT(name) next_##name
#define HEADER offsetof(VkPhysicalDeviceProperties2, properties)

static void GetProperties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out) {
    NEXT(vkGetPhysicalDeviceProperties)(device, out);
    patch(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, (char *)out, HEADER);
}

static void GetProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out) {
    NEXT(vkGetPhysicalDeviceProperties2)(device, out);
    patch_chain(out);
}

static void GetFeatures(VkPhysicalDevice device, VkPhysicalDeviceFeatures *out) {
    NEXT(vkGetPhysicalDeviceFeatures)(device, out);
    patch(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, (char *)out, HEADER);
}

static void GetFeatures2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *out) {
    NEXT(vkGetPhysicalDeviceFeatures2)(device, out);
    patch_chain(out);
}

static void GetMemory(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *out) {
    (void)device;
    uint32_t one = 1;
    VkResult result;
    give(MEMORY, sizeof *out, &one, out, 0, 0, &result);
}

static void GetMemory2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *out) {
    NEXT(vkGetPhysicalDeviceMemoryProperties2)(device, out);
    GetMemory(device, &out->memoryProperties);
}

static void GetFamilies(VkPhysicalDevice device, uint32_t *count, VkQueueFamilyProperties *out) {
    (void)device;
    VkResult result;
    give(QUEUE_FAMILIES, sizeof *out, count, out, sizeof *out, 0, &result);
}

static void GetFamilies2(VkPhysicalDevice device, uint32_t *count, VkQueueFamilyProperties2 *out) {
    (void)device;
    VkResult result;
    give(QUEUE_FAMILIES, sizeof out->queueFamilyProperties, count, out, sizeof *out,
         offsetof(VkQueueFamilyProperties2, queueFamilyProperties), &result);
}

static VkResult GetExtensions(VkPhysicalDevice device, const char *layer, uint32_t *count, VkExtensionProperties *out) {
    VkResult result;
    if (layer == NULL && give(EXTENSIONS, sizeof *out, count, out, sizeof *out, 0, &result)) return result;
    if (layer != NULL && strcmp(layer, "VK_LAYER_PUMICE_profile") == 0) {
        *count = 0;
        return VK_SUCCESS;
    }
    return NEXT(vkEnumerateDeviceExtensionProperties)(device, layer, count, out);
}

static VkResult GetTimeDomains(VkPhysicalDevice device, uint32_t *count, VkTimeDomainEXT *out) {
    (void)device;
    VkResult result = VK_SUCCESS;
    if (!give(TIME_DOMAINS, sizeof *out, count, out, sizeof *out, 0, &result)) *count = 0;
    return result;
}

static VkResult GetMatrices(VkPhysicalDevice device, uint32_t *count, void *out) {
    (void)device;
    /* sType, pNext, four sizes and four types, saturation and scope. */
    size_t stride = 16 + 10 * sizeof(uint32_t), padded = (stride + 7) / 8 * 8;
    VkResult result = VK_SUCCESS;
    if (!give(MATRICES, padded, count, out, padded, 0, &result)) *count = 0;
    return result;
}

/* Timeline semaphores: what they were signalled to, at once with the submission. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { VkSemaphore handle; uint64_t value; } semaphores[65536];
static uint32_t semaphore_count;

static uint64_t value_of(VkSemaphore handle) {
    uint64_t value = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = semaphore_count; i-- > 0;)
        if (semaphores[i].handle == handle) {
            value = semaphores[i].value;
            break;
        }
    pthread_mutex_unlock(&lock);
    return value;
}

static void signal_to(VkSemaphore handle, uint64_t value) {
    uint32_t i;
    pthread_mutex_lock(&lock);
    for (i = 0; i < semaphore_count && semaphores[i].handle != handle; i++);
    if (i == semaphore_count && semaphore_count < 65536) semaphore_count++;
    if (i < semaphore_count) semaphores[i].handle = handle, semaphores[i].value = value;
    pthread_mutex_unlock(&lock);
}

static VkResult CreateSemaphore_(VkDevice device, const VkSemaphoreCreateInfo *info, const VkAllocationCallbacks *with,
                                 VkSemaphore *out) {
    VkResult result = NEXT(vkCreateSemaphore)(device, info, with, out);
    for (const VkBaseInStructure *each = info->pNext; result == VK_SUCCESS && each != NULL; each = each->pNext)
        if (each->sType == VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO)
            signal_to(*out, ((const VkSemaphoreTypeCreateInfo *)each)->initialValue);
    return result;
}

static VkResult GetCounter(VkDevice device, VkSemaphore semaphore, uint64_t *out) {
    (void)device;
    *out = value_of(semaphore);
    return VK_SUCCESS;
}

static VkResult Signal(VkDevice device, const VkSemaphoreSignalInfo *info) {
    (void)device;
    signal_to(info->semaphore, info->value);
    return VK_SUCCESS;
}

static VkResult Wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout) {
    (void)device;
    struct timespec pause = {0, 200000};
    for (uint64_t waited = 0;; waited += 200000) {
        uint32_t reached = 0;
        for (uint32_t i = 0; i < info->semaphoreCount; i++)
            reached += value_of(info->pSemaphores[i]) >= info->pValues[i];
        if (reached == info->semaphoreCount || (reached && info->flags & VK_SEMAPHORE_WAIT_ANY_BIT)) return VK_SUCCESS;
        if (waited >= timeout) return VK_TIMEOUT;
        nanosleep(&pause, NULL);
    }
}

static VkResult Submit(VkQueue queue, uint32_t count, const VkSubmitInfo *submits, VkFence fence) {
    VkResult result = NEXT(vkQueueSubmit)(queue, count, submits, fence);
    for (uint32_t i = 0; i < count; i++)
        for (const VkBaseInStructure *each = submits[i].pNext; each != NULL; each = each->pNext)
            if (each->sType == VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) {
                const VkTimelineSemaphoreSubmitInfo *info = (const void *)each;
                for (uint32_t k = 0; k < info->signalSemaphoreValueCount; k++)
                    signal_to(submits[i].pSignalSemaphores[k], info->pSignalSemaphoreValues[k]);
            }
    return result;
}

static VkResult Submit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *submits, VkFence fence) {
    VkResult result = NEXT(vkQueueSubmit2)(queue, count, submits, fence);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < submits[i].signalSemaphoreInfoCount; k++)
            signal_to(submits[i].pSignalSemaphoreInfos[k].semaphore, submits[i].pSignalSemaphoreInfos[k].value);
    return result;
}

static VkResult CreateInstance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *with, VkInstance *out) {
    VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)
        link = (VkLayerInstanceCreateInfo *)link->pNext;
    next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    next_physical = link->u.pLayerInfo->pfnNextGetPhysicalDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    load();
    VkResult result = ((PFN_vkCreateInstance)next_instance(NULL, "vkCreateInstance"))(info, with, out);
    if (result == VK_SUCCESS) {
        the_instance = *out;
        OF_INSTANCE(RESOLVE)
    }
    return result;
}

static VkResult CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                             const VkAllocationCallbacks *with, VkDevice *out) {
    VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)
        link = (VkLayerDeviceCreateInfo *)link->pNext;
    next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateDevice)next(the_instance, "vkCreateDevice"))(physical, info, with, out);
    if (result == VK_SUCCESS) {
        OF_DEVICE(RESOLVE_OF_DEVICE)
    }
    return result;
}

static PFN_vkVoidFunction GetDeviceProcAddr(VkDevice device, const char *name);
static PFN_vkVoidFunction GetInstanceProcAddr(VkInstance instance, const char *name);

static const struct { const char *name; void *function; } of_instance[] = {
    {"vkCreateInstance", CreateInstance},
    {"vkCreateDevice", CreateDevice},
    {"vkGetInstanceProcAddr", GetInstanceProcAddr},
    {"vkGetPhysicalDeviceProperties", GetProperties},
    {"vkGetPhysicalDeviceProperties2", GetProperties2},
    {"vkGetPhysicalDeviceProperties2KHR", GetProperties2},
    {"vkGetPhysicalDeviceFeatures", GetFeatures},
    {"vkGetPhysicalDeviceFeatures2", GetFeatures2},
    {"vkGetPhysicalDeviceFeatures2KHR", GetFeatures2},
    {"vkGetPhysicalDeviceMemoryProperties", GetMemory},
    {"vkGetPhysicalDeviceMemoryProperties2", GetMemory2},
    {"vkGetPhysicalDeviceMemoryProperties2KHR", GetMemory2},
    {"vkGetPhysicalDeviceQueueFamilyProperties", GetFamilies},
    {"vkGetPhysicalDeviceQueueFamilyProperties2", GetFamilies2},
    {"vkGetPhysicalDeviceQueueFamilyProperties2KHR", GetFamilies2},
    {"vkEnumerateDeviceExtensionProperties", GetExtensions},
    {"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", GetTimeDomains},
    {"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR", GetTimeDomains},
    {"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", GetMatrices},
}, of_device[] = {
    {"vkGetDeviceProcAddr", GetDeviceProcAddr},
    {"vkCreateSemaphore", CreateSemaphore_},
    {"vkGetSemaphoreCounterValue", GetCounter},
    {"vkGetSemaphoreCounterValueKHR", GetCounter},
    {"vkSignalSemaphore", Signal},
    {"vkSignalSemaphoreKHR", Signal},
    {"vkWaitSemaphores", Wait},
    {"vkWaitSemaphoresKHR", Wait},
    {"vkQueueSubmit", Submit},
    {"vkQueueSubmit2", Submit2},
    {"vkQueueSubmit2KHR", Submit2},
};

#define COUNT(array) (sizeof array / sizeof *array)

static PFN_vkVoidFunction GetDeviceProcAddr(VkDevice device, const char *name) {
    for (size_t i = 0; i < COUNT(of_device); i++)
        if (strcmp(name, of_device[i].name) == 0) return (PFN_vkVoidFunction)of_device[i].function;
    return next_device(device, name);
}

static PFN_vkVoidFunction GetInstanceProcAddr(VkInstance instance, const char *name) {
    for (size_t i = 0; i < COUNT(of_instance); i++)
        if (strcmp(name, of_instance[i].name) == 0) return (PFN_vkVoidFunction)of_instance[i].function;
    for (size_t i = 0; i < COUNT(of_device); i++)
        if (strcmp(name, of_device[i].name) == 0) return (PFN_vkVoidFunction)of_device[i].function;
    return next_instance == NULL ? NULL : next_instance(instance, name);
}

/* For functions that are newer than the loader. */
static PFN_vkVoidFunction GetPhysicalDeviceProcAddr(VkInstance instance, const char *name) {
    for (size_t i = 0; i < COUNT(of_instance); i++)
        if (strncmp(name, "vkGetPhysicalDevice", 19) == 0 && strcmp(name, of_instance[i].name) == 0)
            return (PFN_vkVoidFunction)of_instance[i].function;
    return next_physical == NULL ? NULL : next_physical(instance, name);
}

VK_LAYER_EXPORT VkResult vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *with) {
    with->loaderLayerInterfaceVersion = 2;
    with->pfnGetInstanceProcAddr = GetInstanceProcAddr;
    with->pfnGetDeviceProcAddr = GetDeviceProcAddr;
    with->pfnGetPhysicalDeviceProcAddr = GetPhysicalDeviceProcAddr;
    return VK_SUCCESS;
}
