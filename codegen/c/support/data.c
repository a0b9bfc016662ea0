/* Reads the shaders and constants that lie beside the program. */
static int data_open(NAME_program *p, const NAME_options *options)
{
    const char *path = options->data_path ? options->data_path : "STEM.data";
    uint8_t head[32];
    uint64_t size = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return fail(p, NOT_FOUND, "%s: the program's data cannot be read", path);
    bool is_read = fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head, "PUMICE01", 8);
    if (is_read) memcpy(&size, head + 8, sizeof size);
    is_read = is_read && size == data_size && !memcmp(head + 16, data_digest, sizeof data_digest);
    if (is_read) {
        p->data = malloc((size_t)size);
        is_read = p->data && fread(p->data + sizeof head, 1, (size_t)size - sizeof head, file) == size - sizeof head;
    }
    fclose(file);
    if (is_read) return OK;
    return fail(p, DATA_LOSS, "%s: expected the data that was written with this program", path);
}

static void data_close(NAME_program *p)
{
    free(p->data);
}
