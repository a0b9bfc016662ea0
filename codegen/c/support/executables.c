/* Whether the device has what the shaders of an executable declare. */
static int executable_check(NAME_program *p, const executable_source *source)
{
    for (const uint16_t *needs = source->features; *needs != NO_FEATURE; needs++) {
        if (!feature_has(&p->features, *needs)) {
            return fail(p, UNAVAILABLE, "%s lacks the feature %s, which the program's shaders need", p->device_name,
                        feature_table[*needs].name);
        }
    }
    if ((p->subgroup_operations & source->subgroup_operations) != source->subgroup_operations) {
        return fail(p, UNAVAILABLE, "%s lacks subgroup operations that the program's shaders need", p->device_name);
    }
    if (source->least_subgroup_size > p->subgroup_size ||
        (source->subgroup_size && source->subgroup_size != p->subgroup_size)) {
        return fail(p, UNAVAILABLE, "the program's shaders need subgroups of %" PRIu32 " invocations; %s has %" PRIu32,
                    source->least_subgroup_size, p->device_name, p->subgroup_size);
    }
    return OK;
}

static int pipeline_create(NAME_program *p, const pipeline_source *source, VkShaderModule module, pipeline *made)
{
    int status = OK;
    made->source = source;
    if (source->push_bytes > p->limits.maxPushConstantsSize) {
        return fail(p, UNAVAILABLE, "%s takes %" PRIu32 " bytes of push constants; a kernel has %" PRIu32,
                    p->device_name, p->limits.maxPushConstantsSize, source->push_bytes);
    }
    for (uint32_t set = 0; set < source->set_count; set++) {
        VkDescriptorSetLayoutBinding bindings[MAX_BINDINGS];
        uint32_t count = 0;
        for (uint32_t index = 0; index < source->binding_count; index++) {
            if (source->bindings[index].set != set) continue;
            bindings[count++] = (VkDescriptorSetLayoutBinding){
                .binding = source->bindings[index].binding,
                .descriptorType = (VkDescriptorType)source->bindings[index].type,
                .descriptorCount = 1,
                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
            };
        }
        const VkDescriptorSetLayoutCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = count,
            .pBindings = bindings,
        };
        TRY(check(p, vkCreateDescriptorSetLayout(p->device, &info, NULL, &made->sets[set]),
                  "vkCreateDescriptorSetLayout"));
    }
    const VkPushConstantRange constants = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = source->push_bytes};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = source->set_count,
        .pSetLayouts = made->sets,
        .pushConstantRangeCount = source->push_bytes ? 1 : 0,
        .pPushConstantRanges = &constants,
    };
    TRY(check(p, vkCreatePipelineLayout(p->device, &layout, NULL, &made->layout), "vkCreatePipelineLayout"));
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .module = module,
            .pName = source->entry_point,
        },
        .layout = made->layout,
    };
    TRY(check(p, vkCreateComputePipelines(p->device, VK_NULL_HANDLE, 1, &info, NULL, &made->handle),
              "vkCreateComputePipelines"));
done:
    return status;
}

/* Makes the pipelines of an executable, when the program first takes it. */
static int executable_create(NAME_program *p, uint32_t index, executable **result)
{
    int status = OK;
    executable *made = &p->executables[index];
    if (!made->pipelines) {
        const executable_source *source = &executable_sources[index];
        made->source = source;
        TRY(executable_check(p, source));
        made->pipelines = calloc(source->pipeline_count, sizeof *made->pipelines);
        if (!made->pipelines) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
        VkShaderModule module = VK_NULL_HANDLE;
        for (uint32_t each = 0; each < source->pipeline_count && status == OK; each++) {
            const pipeline_source *wanted = &source->pipelines[each];
            if (!each || wanted->shader != source->pipelines[each - 1].shader) {
                if (module) vkDestroyShaderModule(p->device, module, NULL);
                module = VK_NULL_HANDLE;
                const VkShaderModuleCreateInfo info = {
                    .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                    .codeSize = shaders[wanted->shader].size,
                    .pCode = SHADER_CODE(p, wanted->shader),
                };
                status = check(p, vkCreateShaderModule(p->device, &info, NULL, &module), "vkCreateShaderModule");
            }
            if (status == OK) status = pipeline_create(p, wanted, module, &made->pipelines[each]);
        }
        if (module) vkDestroyShaderModule(p->device, module, NULL);
    }
    if (status == OK) *result = made;
done:
    return status;
}

static void executables_destroy(NAME_program *p)
{
    for (uint32_t index = 0; index < EXECUTABLE_COUNT; index++) {
        executable *each = &p->executables[index];
        for (uint32_t ordinal = 0; each->pipelines && ordinal < each->source->pipeline_count; ordinal++) {
            pipeline *unused = &each->pipelines[ordinal];
            if (unused->handle) vkDestroyPipeline(p->device, unused->handle, NULL);
            if (unused->layout) vkDestroyPipelineLayout(p->device, unused->layout, NULL);
            for (uint32_t set = 0; set < MAX_SETS; set++) {
                if (unused->sets[set]) vkDestroyDescriptorSetLayout(p->device, unused->sets[set], NULL);
            }
        }
        free(each->pipelines);
    }
}

/* The number of a function of an executable. */
static int executable_lookup(NAME_program *p, const executable *asked, const char *name, int64_t *result)
{
    for (uint32_t index = 0; asked && index < asked->source->pipeline_count; index++) {
        if (!strcmp(asked->source->pipelines[index].entry_point, name)) {
            *result = index;
            return OK;
        }
    }
    return fail(p, NOT_FOUND, "an executable has no function %s", name);
}
