static int instance_create(NAME_program *p)
{
    uint32_t version = 0;
    int status = OK;
    TRY(check(p, vkEnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion"));
    if (version < VK_API_VERSION_1_2) {
        return fail(p, UNAVAILABLE, "expected a Vulkan loader of version 1.2 or later, found %u.%u",
                    VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    }
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "NAME",
        .apiVersion = VK_API_VERSION_1_2,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    TRY(check(p, vkCreateInstance(&info, NULL, &p->instance), "vkCreateInstance"));
    p->owns_instance = true;
done:
    return status;
}

/* The family of the queue that the program submits to: one that computes, without graphics where there is one. */
static bool find_family(VkPhysicalDevice device, uint32_t *family)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = COUNT(families);
    bool is_found = false;
    vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families);
    for (uint32_t index = 0; index < count; index++) {
        if (!(families[index].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (!is_found || !(families[index].queueFlags & VK_QUEUE_GRAPHICS_BIT)) {
            *family = index;
            if (!(families[index].queueFlags & VK_QUEUE_GRAPHICS_BIT)) return true;
        }
        is_found = true;
    }
    return is_found;
}

/* Reads what a device can do; the links between the structures are only good for the call. */
static void read_features(VkPhysicalDevice device, features *found)
{
    memset(found, 0, sizeof *found);
    found->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    found->core.pNext = &found->v11;
    found->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    found->v11.pNext = &found->v12;
    found->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    vkGetPhysicalDeviceFeatures2(device, &found->core);
    found->core.pNext = NULL;
    found->v11.pNext = NULL;
    found->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &found->properties,
    };
    vkGetPhysicalDeviceProperties2(device, &properties);
}

static bool feature_has(const features *found, uint32_t index)
{
    VkBool32 value;
    memcpy(&value, (const char *)found + feature_table[index].offset, sizeof value);
    return value != VK_FALSE;
}

/* How well a device suits; 0 if it does not. */
static uint32_t rate_device(NAME_program *p, VkPhysicalDevice device, const char *wanted)
{
    VkPhysicalDeviceProperties properties;
    features found;
    uint32_t family, score;
    vkGetPhysicalDeviceProperties(device, &properties);
    if (wanted && !strstr(properties.deviceName, wanted)) {
        fail(p, NOT_FOUND, "no Vulkan device's name contains '%s'", wanted);
        return 0;
    }
    if (properties.apiVersion < VK_API_VERSION_1_2) {
        fail(p, UNAVAILABLE, "%s has Vulkan %u.%u; the program needs 1.2", properties.deviceName,
             VK_API_VERSION_MAJOR(properties.apiVersion), VK_API_VERSION_MINOR(properties.apiVersion));
        return 0;
    }
    read_features(device, &found);
    if (!found.v12.timelineSemaphore || !find_family(device, &family)) {
        fail(p, UNAVAILABLE, "%s has no timeline semaphores, or no queue that computes", properties.deviceName);
        return 0;
    }
    switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: score = 4; break;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: score = 3; break;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: score = 2; break;
    default: score = 1; break;
    }
    /* A device that has all features comes before one that lacks some. */
    for (uint32_t index = 0; feature_table[index].name; index++) {
        if (!feature_has(&found, index)) return score;
    }
    return score + 8;
}

static int device_choose(NAME_program *p, const char *wanted)
{
    int status = OK;
    uint32_t count = 0, best = 0;
    VkPhysicalDevice *devices = NULL;
    TRY(check(p, vkEnumeratePhysicalDevices(p->instance, &count, NULL), "vkEnumeratePhysicalDevices"));
    devices = calloc(count ? count : 1, sizeof *devices);
    if (!devices) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    fail(p, UNAVAILABLE, "no Vulkan device was found");
    VkResult result = vkEnumeratePhysicalDevices(p->instance, &count, devices);
    if (result != VK_INCOMPLETE) TRY(check(p, result, "vkEnumeratePhysicalDevices"));
    for (uint32_t index = 0; index < count; index++) {
        uint32_t score = rate_device(p, devices[index], wanted);
        if (score > best) {
            best = score;
            p->physical_device = devices[index];
        }
    }
    if (!best) status = UNAVAILABLE;
done:
    free(devices);
    return status;
}

static int device_create(NAME_program *p)
{
    if (!find_family(p->physical_device, &p->family)) {
        return fail(p, UNAVAILABLE, "the device has no queue that computes");
    }
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = p->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    features enabled;
    memset(&enabled, 0, sizeof enabled);
    enabled.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    enabled.core.pNext = &enabled.v11;
    enabled.v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    enabled.v11.pNext = &enabled.v12;
    enabled.v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    enabled.v12.timelineSemaphore = VK_TRUE;
    for (uint32_t index = 0; feature_table[index].name; index++) {
        const VkBool32 value = feature_has(&p->features, index);
        memcpy((char *)&enabled + feature_table[index].offset, &value, sizeof value);
    }
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &enabled.core,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };
    int status = check(p, vkCreateDevice(p->physical_device, &info, NULL, &p->device), "vkCreateDevice");
    if (status != OK) return status;
    p->owns_device = true;
    vkGetDeviceQueue(p->device, p->family, 0, &p->queue);
    return OK;
}

/* Takes the application's device, or makes one. */
static int device_open(NAME_program *p, const NAME_options *options)
{
    int status = OK;
    p->instance = options->instance;
    p->physical_device = options->physical_device;
    if (options->device && (!options->physical_device || !options->queue)) {
        return fail(p, INVALID_ARGUMENT, "a device of the application comes with its physical_device and a queue");
    }
    if (options->physical_device && !options->instance) {
        return fail(p, INVALID_ARGUMENT, "a physical_device of the application comes with its instance");
    }
    if (!p->instance) TRY(instance_create(p));
    if (!p->physical_device) TRY(device_choose(p, options->device_name));
    VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &subgroups,
    };
    vkGetPhysicalDeviceProperties2(p->physical_device, &properties);
    if (properties.properties.apiVersion < VK_API_VERSION_1_2) {
        return fail(p, UNAVAILABLE, "%s has Vulkan %u.%u; the program needs 1.2", properties.properties.deviceName,
                    VK_API_VERSION_MAJOR(properties.properties.apiVersion),
                    VK_API_VERSION_MINOR(properties.properties.apiVersion));
    }
    p->limits = properties.properties.limits;
    p->subgroup_size = subgroups.subgroupSize;
    p->subgroup_operations = subgroups.supportedOperations;
    snprintf(p->device_name, sizeof p->device_name, "%s", properties.properties.deviceName);
    vkGetPhysicalDeviceMemoryProperties(p->physical_device, &p->memory);
    read_features(p->physical_device, &p->features);
    if (options->device) {
        p->device = options->device;
        p->queue = options->queue;
        p->family = options->queue_family;
    } else {
        TRY(device_create(p));
    }
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo semaphore = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    TRY(check(p, vkCreateSemaphore(p->device, &semaphore, NULL, &p->timeline), "vkCreateSemaphore"));
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = p->family,
    };
    TRY(check(p, vkCreateCommandPool(p->device, &pool, NULL, &p->pool), "vkCreateCommandPool"));
done:
    return status;
}

/* Closes all that device_open made, once nothing runs. */
static void device_close(NAME_program *p)
{
    if (p->pool) vkDestroyCommandPool(p->device, p->pool, NULL);
    if (p->timeline) vkDestroySemaphore(p->device, p->timeline, NULL);
    if (p->owns_device) vkDestroyDevice(p->device, NULL);
    if (p->owns_instance) vkDestroyInstance(p->instance, NULL);
}

/* Waits until the device has passed a point of the program's timeline. */
static int wait_until(NAME_program *p, uint64_t value)
{
    if (p->completed >= value) return OK;
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &p->timeline,
        .pValues = &value,
    };
    int status = check(p, vkWaitSemaphores(p->device, &info, UINT64_MAX), "vkWaitSemaphores");
    if (status == OK) p->completed = value;
    return status;
}

/* Whether a feature is there, for programs that choose between executables. */
static int32_t query_feature(NAME_program *p, uint32_t index)
{
    return feature_has(&p->features, index);
}
