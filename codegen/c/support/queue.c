/* What a submission signals and what waits for it: a point of the program's timeline, and semaphores of callers. */
typedef struct fence {
    object header;
    uint64_t value;                /* point of the program's timeline; 0: none to wait for */
    const NAME_semaphore *points;  /* the caller's, which are reached before the fence is */
    const NAME_semaphore *signals; /* the caller's, which are signalled when the fence is */
    NAME_semaphore *joined;        /* owned storage of points */
    uint32_t point_count;
    uint32_t signal_count;
    int32_t failure;   /* status that the program gave it */
    bool is_submitted; /* whether something that reaches it was submitted */
} fence;

static void fence_destroy(NAME_program *p, object *unused)
{
    free(((fence *)(void *)unused)->joined);
    object_keep(&p->spare_fences, unused);
}

static int fence_create(NAME_program *p, fence **result)
{
    object *made = NULL;
    int status = object_new(p, &p->spare_fences, sizeof(fence), fence_destroy, &made);
    if (status == OK) REPLACE(*result, (fence *)(void *)made);
    return status;
}

/* Where a fence stands that work waits for. */
static int fence_check(NAME_program *p, const fence *wait)
{
    if (!wait) return OK;
    if (wait->failure) return fail(p, wait->failure, "the program failed this fence");
    if (wait->is_submitted) return OK;
    return fail(p, FAILED_PRECONDITION, "the program waits for a fence that nothing signals");
}

/* Submits commands, or none, behind all that was submitted before. */
static int submit(NAME_program *p, VkCommandBuffer commands, const fence *wait, fence *signal)
{
    VkSemaphore waits[MAX_SEMAPHORES], signals[MAX_SEMAPHORES + 1];
    uint64_t wait_values[MAX_SEMAPHORES], signal_values[MAX_SEMAPHORES + 1];
    VkPipelineStageFlags stages[MAX_SEMAPHORES];
    int status = fence_check(p, wait);
    if (status != OK) return status;
    if (p->is_lost) return fail(p, DATA_LOSS, "the device was lost; destroy the program and create it again");
    const uint32_t wait_count = wait ? wait->point_count : 0;
    const uint32_t signal_count = signal ? signal->signal_count : 0;
    if (wait_count > MAX_SEMAPHORES || signal_count > MAX_SEMAPHORES) {
        return fail(p, RESOURCE_EXHAUSTED, "expected at most %d semaphores", MAX_SEMAPHORES);
    }
    for (uint32_t index = 0; index < wait_count; index++) {
        waits[index] = wait->points[index].handle;
        wait_values[index] = wait->points[index].value;
        stages[index] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    signals[0] = p->timeline;
    signal_values[0] = p->submitted + 1;
    for (uint32_t index = 0; index < signal_count; index++) {
        signals[index + 1] = signal->signals[index].handle;
        signal_values[index + 1] = signal->signals[index].value;
    }
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait_count,
        .pWaitSemaphoreValues = wait_values,
        .signalSemaphoreValueCount = signal_count + 1,
        .pSignalSemaphoreValues = signal_values,
    };
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .waitSemaphoreCount = wait_count,
        .pWaitSemaphores = waits,
        .pWaitDstStageMask = stages,
        .commandBufferCount = commands ? 1 : 0,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = signal_count + 1,
        .pSignalSemaphores = signals,
    };
    status = check(p, vkQueueSubmit(p->queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
    if (status != OK) return status;
    p->submitted++;
    if (signal) {
        signal->value = p->submitted;
        signal->signal_count = 0;
        signal->is_submitted = true;
    }
    return OK;
}

/* Reaches a fence when another one is, without work in between. */
static int fence_follow(NAME_program *p, const fence *wait, fence *signal)
{
    if (!signal) return OK;
    if (signal->signal_count) return submit(p, VK_NULL_HANDLE, wait, signal);
    int status = fence_check(p, wait);
    if (status != OK) return status;
    signal->is_submitted = true;
    if (wait) {
        signal->value = wait->value;
        signal->points = wait->points;
        signal->point_count = wait->point_count;
        if (wait->joined) {
            signal->joined = malloc(wait->point_count * sizeof *signal->joined);
            if (!signal->joined) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
            memcpy(signal->joined, wait->joined, wait->point_count * sizeof *signal->joined);
            signal->points = signal->joined;
        }
    }
    return OK;
}

static int fence_fail(fence *failed, int32_t code)
{
    if (failed) failed->failure = code & 31 ? code & 31 : UNKNOWN;
    return OK;
}

/* 0 once a fence is reached, else DEFERRED or its failure. */
static int fence_query(NAME_program *p, const fence *asked, int32_t *result)
{
    uint64_t value = 0;
    int status = OK;
    *result = DEFERRED;
    if (!asked) return fail(p, INVALID_ARGUMENT, "expected a fence, got none");
    if (asked->failure) {
        *result = asked->failure;
        return OK;
    }
    if (!asked->is_submitted) return OK;
    TRY(check(p, vkGetSemaphoreCounterValue(p->device, p->timeline, &value), "vkGetSemaphoreCounterValue"));
    p->completed = value;
    if (value < asked->value) return OK;
    for (uint32_t index = 0; index < asked->point_count; index++) {
        const NAME_semaphore *point = &asked->points[index];
        TRY(check(p, vkGetSemaphoreCounterValue(p->device, point->handle, &value), "vkGetSemaphoreCounterValue"));
        if (value < point->value) return OK;
    }
    *result = OK;
done:
    return status;
}

/* A fence that is reached with the last of several; none for none. */
static int fence_join(NAME_program *p, fence *const *fences, uint32_t count, fence **result)
{
    int status = OK;
    fence *made = NULL;
    uint32_t points = 0;
    for (uint32_t index = 0; index < count; index++) {
        if (!fences[index]) continue;
        TRY(fence_check(p, fences[index]));
        if (!made) TRY(fence_create(p, &made));
        if (fences[index]->value > made->value) made->value = fences[index]->value;
        points += fences[index]->point_count;
    }
    if (made) made->is_submitted = true;
    if (points) {
        made->joined = malloc(points * sizeof *made->joined);
        if (!made->joined) {
            status = fail(p, RESOURCE_EXHAUSTED, "out of memory");
            goto done;
        }
        made->points = made->joined;
        for (uint32_t index = 0; index < count; index++) {
            for (uint32_t each = 0; fences[index] && each < fences[index]->point_count; each++) {
                made->joined[made->point_count++] = fences[index]->points[each];
            }
        }
    }
    REPLACE(*result, made);
    made = NULL;
done:
    release(p, made);
    return status;
}

/* Waits on the host until fences are reached. */
static int fence_await(NAME_program *p, fence *const *fences, uint32_t count)
{
    int status = OK;
    for (uint32_t index = 0; index < count; index++) {
        const fence *each = fences[index];
        if (!each) continue;
        TRY(fence_check(p, each));
        for (uint32_t point = 0; point < each->point_count; point++) {
            const VkSemaphoreWaitInfo info = {
                .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                .semaphoreCount = 1,
                .pSemaphores = &each->points[point].handle,
                .pValues = &each->points[point].value,
            };
            TRY(check(p, vkWaitSemaphores(p->device, &info, UINT64_MAX), "vkWaitSemaphores"));
        }
        TRY(wait_until(p, each->value));
    }
done:
    return status;
}

/* The same with a limit in milliseconds; the result says whether it was kept. */
static int fence_await_for(NAME_program *p, int32_t timeout, fence *const *fences, uint32_t count, int32_t *result)
{
    int status = OK;
    fence *all = NULL;
    VkSemaphore handles[MAX_SEMAPHORES + 1];
    uint64_t values[MAX_SEMAPHORES + 1];
    *result = OK;
    if (timeout == -1) return fence_await(p, fences, count);
    TRY(fence_join(p, fences, count, &all));
    if (!all) return OK;
    if (all->point_count > MAX_SEMAPHORES) {
        status = fail(p, RESOURCE_EXHAUSTED, "expected at most %d semaphores", MAX_SEMAPHORES);
        goto done;
    }
    handles[0] = p->timeline;
    values[0] = all->value;
    for (uint32_t index = 0; index < all->point_count; index++) {
        handles[index + 1] = all->points[index].handle;
        values[index + 1] = all->points[index].value;
    }
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = all->point_count + 1,
        .pSemaphores = handles,
        .pValues = values,
    };
    const VkResult waited = vkWaitSemaphores(p->device, &info, (uint64_t)(uint32_t)timeout * 1000000);
    if (waited == VK_TIMEOUT) {
        *result = DEADLINE_EXCEEDED;
    } else {
        TRY(check(p, waited, "vkWaitSemaphores"));
    }
done:
    release(p, all);
    return status;
}

static bool is_host_memory(int32_t memory_types)
{
    return (memory_types & 0x20) == 0; /* not local to the device */
}

/* Memory for the work behind a fence. The queue runs in order, so the memory is there at once. */
static int queue_alloca(NAME_program *p, const fence *wait, fence *signal, int32_t memory_types, uint64_t size,
                        buffer **result)
{
    int status = fence_follow(p, wait, signal);
    return status == OK ? buffer_new(p, size, is_host_memory(memory_types), result) : status;
}
