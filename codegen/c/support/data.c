/* Adler-32, as zlib has it: what tells bytes that changed on the disk. */
static uint32_t data_checksum_of(const uint8_t *data, uint64_t size)
{
    uint32_t low = 1, high = 0;
    while (size > 0) {
        const uint64_t part = size < 5552 ? size : 5552; /* so many add up in 32 bits */
        for (uint64_t index = 0; index < part; index++) {
            low += data[index];
            high += low;
        }
        low %= 65521;
        high %= 65521;
        data += part;
        size -= part;
    }
    return high << 16 | low;
}

/* Reads the shaders and constants that lie beside the program. */
static int data_open(NAME_program *p, const NAME_options *options)
{
    const char *path = options->data_path ? options->data_path : "STEM.data";
    uint8_t head[32];
    uint64_t size = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return fail(p, NOT_FOUND, "%s: the program's data cannot be read; say where it is", path);
    bool is_read = fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head, "PUMICE01", 8);
    if (is_read) memcpy(&size, head + 8, sizeof size);
    is_read = is_read && size == data_size && size <= SIZE_MAX / 2 && !memcmp(head + 16, data_digest, sizeof data_digest);
    if (is_read) {
        p->data = malloc((size_t)size);
        is_read = p->data && fread(p->data + sizeof head, 1, (size_t)size - sizeof head, file) == size - sizeof head;
    }
    fclose(file);
    if (!is_read) return fail(p, DATA_LOSS, "%s: expected the data that was written with this program", path);
    if (data_checksum_of(p->data + sizeof head, size - sizeof head) == data_checksum) return OK;
    return fail(p, DATA_LOSS, "%s: the data is damaged; write the program again", path);
}

static void data_close(NAME_program *p)
{
    free(p->data);
}
