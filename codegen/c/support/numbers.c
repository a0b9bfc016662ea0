static int divide(NAME_program *p, bool is_signed, bool is_rest, int bits, int64_t left, int64_t right, int64_t *result)
{
    if (!right) return fail(p, INVALID_ARGUMENT, "%" PRId64 " divided by zero", left);
    if (is_signed) {
        /* The one quotient that is too large wraps. */
        *result = right == -1 ? (is_rest ? 0 : (int64_t)(0u - (uint64_t)left)) : is_rest ? left % right : left / right;
    } else {
        const uint64_t mask = bits == 32 ? UINT32_MAX : UINT64_MAX;
        const uint64_t one = (uint64_t)left & mask, other = (uint64_t)right & mask;
        *result = (int64_t)(is_rest ? one % other : one / other);
    }
    return OK;
}

static int divide_i32(NAME_program *p, bool is_signed, bool is_rest, int32_t left, int32_t right, int32_t *result)
{
    int64_t wide = 0;
    int status = divide(p, is_signed, is_rest, 32, left, right, &wide);
    *result = (int32_t)wide;
    return status;
}

static int divide_i64(NAME_program *p, bool is_signed, bool is_rest, int64_t left, int64_t right, int64_t *result)
{
    return divide(p, is_signed, is_rest, 64, left, right, result);
}

static int32_t shift_right_i32(int32_t value, uint32_t amount)
{
    return value < 0 ? (int32_t)~(~(uint32_t)value >> amount) : value >> amount;
}

static int64_t shift_right_i64(int64_t value, uint32_t amount)
{
    return value < 0 ? (int64_t)~(~(uint64_t)value >> amount) : value >> amount;
}

static int64_t count_leading_zeros_i64(int64_t value)
{
    int64_t count = 0;
    while (count < 64 && !((uint64_t)value >> (63 - count) & 1)) count++;
    return count;
}

static int32_t count_leading_zeros_i32(int32_t value)
{
    return (int32_t)count_leading_zeros_i64((int64_t)(uint32_t)value) - 32;
}

static float bits_to_float(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int32_t float_to_bits(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double bits_to_double(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int64_t double_to_bits(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
