#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != OK) goto done;                                                                                   \
    } while (0)

/* Gives a variable of references a new value, which the variable owns from now on. */
#define REPLACE(variable, value)                                                                                       \
    do {                                                                                                               \
        void *replaced_ = (variable);                                                                                  \
        (variable) = (value);                                                                                          \
        release(p, replaced_);                                                                                         \
    } while (0)

/* Copies a reference. */
#define ASSIGN(variable, value) REPLACE(variable, retain(value))

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Status codes, as the header names them. */
enum {
    OK = 0,
    CANCELLED = 1,
    UNKNOWN = 2,
    INVALID_ARGUMENT = 3,
    DEADLINE_EXCEEDED = 4,
    NOT_FOUND = 5,
    ALREADY_EXISTS = 6,
    PERMISSION_DENIED = 7,
    RESOURCE_EXHAUSTED = 8,
    FAILED_PRECONDITION = 9,
    ABORTED = 10,
    OUT_OF_RANGE = 11,
    UNIMPLEMENTED = 12,
    INTERNAL = 13,
    UNAVAILABLE = 14,
    DATA_LOSS = 15,
    UNAUTHENTICATED = 16,
    DEFERRED = 17
};

/* What several variables, lists and globals may hold: it goes with its last reference. */
typedef struct object object;

struct object {
    uint32_t references;
    void (*destroy)(NAME_program *, object *);
    object *next; /* in a list of spare ones */
};

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int fail(NAME_program *p, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->message, sizeof p->message, format, arguments);
    va_end(arguments);
    return code;
}

const char *NAME_status_name(int status)
{
    static const char *const names[] = {
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
        "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    };
    return status >= 0 && status < (int)COUNT(names) ? names[status] : "UNKNOWN";
}

const char *NAME_error(const NAME_program *program)
{
    return program ? program->message : "there was no memory for the program";
}

/* Turns what Vulkan returned into a status. */
static int check(NAME_program *p, VkResult result, const char *call)
{
    switch (result) {
    case VK_SUCCESS: return OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY: return fail(p, RESOURCE_EXHAUSTED, "%s: out of host memory", call);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return fail(p, RESOURCE_EXHAUSTED, "%s: out of device memory", call);
    case VK_ERROR_DEVICE_LOST:
        p->is_lost = true;
        return fail(p, DATA_LOSS, "%s: the device was lost; destroy the program and create it again", call);
    case VK_ERROR_INCOMPATIBLE_DRIVER: return fail(p, UNAVAILABLE, "%s: no Vulkan driver was found", call);
    case VK_ERROR_LAYER_NOT_PRESENT: return fail(p, UNAVAILABLE, "%s: a layer that is asked for is missing", call);
    default: return fail(p, INTERNAL, "%s: VkResult %d", call, (int)result);
    }
}

static void *retain(void *pointer)
{
    object *found = pointer;
    if (found) found->references++;
    return pointer;
}

static void release(NAME_program *p, void *pointer)
{
    object *found = pointer;
    if (found && --found->references == 0) found->destroy(p, found);
}

/* A new object with one reference, all zero behind its header; from a list of spare ones where there is one. */
static int object_new(NAME_program *p, object **spare, size_t size, void (*destroy)(NAME_program *, object *),
                      object **result)
{
    object *made = *spare;
    if (made) {
        *spare = made->next;
        memset(made, 0, size);
    } else {
        made = calloc(1, size);
        if (!made) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    }
    made->references = 1;
    made->destroy = destroy;
    *result = made;
    return OK;
}

static void object_keep(object **spare, object *unused)
{
    unused->next = *spare;
    *spare = unused;
}

static void objects_free(object **spare)
{
    while (*spare) {
        object *next = (*spare)->next;
        free(*spare);
        *spare = next;
    }
}

/* Makes room for one more element of a growing array. */
static int grow(NAME_program *p, void **items, uint32_t *room, uint32_t count, size_t size)
{
    if (count < *room) return OK;
    uint32_t more = *room ? 2 * *room : 8;
    void *moved = realloc(*items, more * size);
    if (!moved) return fail(p, RESOURCE_EXHAUSTED, "out of memory");
    *items = moved;
    *room = more;
    return OK;
}
