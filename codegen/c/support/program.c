struct NAME_program {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    bool owns_instance, owns_device, is_lost;
    char device_name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceMemoryProperties memory;
    features features;
    uint32_t subgroup_size;
    VkSubgroupFeatureFlags subgroup_operations;
    VkCommandPool pool;
    VkSemaphore timeline;  /* counts submissions */
    uint64_t submitted;    /* the last one's number */
    uint64_t completed;    /* the last one that is known to be done */
    uint64_t serial;       /* the last one given to a buffer */
    object *spare_buffers; /* memory for the next buffers */
    object *spare_parts, *spare_fences, *spare_views;
    uint32_t spare_buffer_count, allocation_count;
    recording *retired;
    executable executables[EXECUTABLE_COUNT];
    PROGRAM_GLOBALS
    DATA_MEMBER
    char message[512];
};

int NAME_create(const NAME_options *options, NAME_program **program)
{
    static const NAME_options defaults;
    int status = OK;
    NAME_program *p = calloc(1, sizeof *p);
    *program = p;
    if (!p) return RESOURCE_EXHAUSTED;
    if (!options) options = &defaults;
    DATA_OPEN
    TRY(device_open(p, options));
    TRY(initialize(p));
done:
    return status;
}

void NAME_destroy(NAME_program *p)
{
    if (!p) return;
    if (p->device && !p->is_lost && p->timeline) wait_until(p, p->submitted);
    GLOBALS_RELEASE
    if (p->device) {
        retired_free(p, true);
        trim(p, 0);
        EXECUTABLES_DESTROY
    }
    objects_free(&p->spare_parts);
    objects_free(&p->spare_fences);
    objects_free(&p->spare_views);
    device_close(p);
    DATA_CLOSE
    free(p);
}

const char *NAME_device_name(const NAME_program *program)
{
    return program->device_name;
}

uint32_t NAME_allocation_count(const NAME_program *program)
{
    return program->allocation_count;
}
