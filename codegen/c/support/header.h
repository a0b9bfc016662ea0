/* NAME: a program for Vulkan, written by pumice from SOURCE.
 *
 * It needs a Vulkan 1.2 device with timeline semaphores, the Vulkan loader and the C library:
 *
 *     cc -std=c11 NAME.c application.c -lvulkan -lm
 *
 * Calling sequence: NAME_create, calls of its functions in any number, NAME_destroy.
 *
 *     NAME_program *program;
 *     if (NAME_create(NULL, &program) != 0) puts(NAME_error(program));
 *     ...
 *     NAME_destroy(program);
 *
 * Every function that can fail returns 0, or one of the codes of NAME_status; NAME_error says what was
 * expected and what came. A call that fails has written nothing, or leaves its outputs undefined.
 *
 * Thread rule: one thread at a time uses a program and its buffers. Where the queue is the application's, the
 * application holds off its other submissions to it during NAME_create and during calls.
 */
#ifndef NAME_H
#define NAME_H

#include <stdint.h>
#include <vulkan/vulkan.h>

#ifndef NAME_API
#define NAME_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { NAME_MAX_RANK = MAX_RANK_VALUE };

/* What functions return. */
typedef enum NAME_status {
    NAME_OK = 0,
    NAME_CANCELLED = 1,
    NAME_UNKNOWN = 2,
    NAME_INVALID_ARGUMENT = 3,    /* shapes, types or values that do not fit */
    NAME_DEADLINE_EXCEEDED = 4,
    NAME_NOT_FOUND = 5,
    NAME_ALREADY_EXISTS = 6,
    NAME_PERMISSION_DENIED = 7,
    NAME_RESOURCE_EXHAUSTED = 8,  /* no memory left */
    NAME_FAILED_PRECONDITION = 9,
    NAME_ABORTED = 10,
    NAME_OUT_OF_RANGE = 11,       /* memory that is too small */
    NAME_UNIMPLEMENTED = 12,
    NAME_INTERNAL = 13,           /* Vulkan failed; the message has its VkResult */
    NAME_UNAVAILABLE = 14,        /* no device that runs the program */
    NAME_DATA_LOSS = 15,          /* the device was lost; the program can only be destroyed */
    NAME_UNAUTHENTICATED = 16
} NAME_status;

/* A program on one device. */
typedef struct NAME_program NAME_program;

/* Memory of the device. */
typedef struct NAME_buffer NAME_buffer;

/* What NAME_create takes; zeros, or no options, mean a device of the program's own. */
typedef struct NAME_options {
    /* The application's: an instance; with a physical device; with a device and a queue of the family, which computes.
     * They outlive the program. The device is one of Vulkan 1.2 and has these features enabled: FEATURE_LIST. */
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    uint32_t queue_family;
    const char *device_name; /* of a device of the program's own: part of its name */
DATA_OPTION
} NAME_options;

/* The type of an argument or a result. */
typedef struct NAME_type {
    const char *name;             /* as the source names it */
    const char *text;             /* such as "4x?xf32" */
    const char *dtype;            /* NumPy's, such as "f4" */
    int32_t element_type;         /* a code of pumice's */
    uint32_t bits;                /* of an element; those of a tensor lie packed */
    uint32_t rank;
    int32_t is_static;            /* whether all lengths are known */
    int64_t shape[NAME_MAX_RANK]; /* -1: a call says it */
} NAME_type;

/* A tensor of a call: elements in row-major order, in memory of the host or of the device.
 *
 *     NAME_tensor x = {.data = floats};
 *
 * With neither data nor buffer an output gets a new buffer, which the caller destroys.
 */
typedef struct NAME_tensor {
    void *data;                   /* host memory, which inputs are only read from */
    NAME_buffer *buffer;          /* device memory; data is not looked at */
    uint64_t offset;              /* of the first element in buffer, bytes; a multiple of what the device asks for */
    uint64_t size;                /* bytes behind data that may be used; 0: as many as the tensor takes */
    uint32_t rank;                /* 0 where the type says all */
    int64_t shape[NAME_MAX_RANK]; /* of inputs, and of outputs whose lengths the caller knows; calls set it of outputs */
} NAME_tensor;

/* A point of a timeline semaphore of the application. */
typedef struct NAME_semaphore {
    VkSemaphore handle;
    uint64_t value;
} NAME_semaphore;

/* A function of the program, for callers that look it up. */
typedef struct NAME_function {
    const char *name;
    uint32_t input_count, output_count;
    const NAME_type *inputs, *outputs;
    int (*call)(NAME_program *program, const NAME_tensor *inputs, NAME_tensor *outputs);
} NAME_function;

/* Opens the device and prepares all that calls need. *program is set even where this fails, unless memory ran out: for
 * NAME_error, and to be destroyed. */
NAME_API int NAME_create(const NAME_options *options, NAME_program **program);

/* Waits for the device and frees all that the program holds. Buffers go before it. */
NAME_API void NAME_destroy(NAME_program *program);

/* What went wrong last. */
NAME_API const char *NAME_error(const NAME_program *program);

/* A status in words, "INVALID_ARGUMENT". */
NAME_API const char *NAME_status_name(int status);

/* The name of the device. */
NAME_API const char *NAME_device_name(const NAME_program *program);

/* How many blocks of device memory the program holds; a warm call whose outputs the caller gives adds none. */
NAME_API uint32_t NAME_allocation_count(const NAME_program *program);

/* The functions of the program. */
NAME_API const NAME_function *NAME_functions(uint32_t *count);

/* Device memory of the program's own; size in bytes. */
NAME_API int NAME_buffer_create(NAME_program *program, uint64_t size, NAME_buffer **result);

/* A range of a VkBuffer of the application, made on the program's device, in whole words of 4 bytes, with the usages
 * storage buffer and transfer source and destination. It outlives the result. Work of the application on it is ordered
 * by semaphores, or by the queue and barriers. */
NAME_API int NAME_buffer_import(NAME_program *program, VkBuffer handle, uint64_t offset, uint64_t size,
                                NAME_buffer **result);

/* Lets go of a buffer; work of asynchronous calls may go on. An imported one is not in use any more behind this. */
NAME_API void NAME_buffer_destroy(NAME_program *program, NAME_buffer *buffer);

/* Bytes. */
NAME_API uint64_t NAME_buffer_size(const NAME_buffer *buffer);

/* Copies between host memory and a buffer, behind all calls so far; offset and size in bytes. */
NAME_API int NAME_buffer_write(NAME_program *program, NAME_buffer *buffer, uint64_t offset, const void *data,
                               uint64_t size);
NAME_API int NAME_buffer_read(NAME_program *program, NAME_buffer *buffer, uint64_t offset, void *data, uint64_t size);

FUNCTION_DECLARATIONS
#ifdef __cplusplus
}
#endif

#endif
