#include "import/trace_file.h"

ps_t trace_ps(int64_t ns, int64_t origin_ns)
{
    enum { PS_PER_NS = 1000 };
    const int64_t horizon_ns = PS_HORIZON / PS_PER_NS;
    double far_ns = (double)ns - (double)origin_ns, most_ns = (double)horizon_ns;
    if (far_ns > most_ns)
        return PS_HORIZON;
    return far_ns < -most_ns ? -PS_HORIZON : (ns - origin_ns) * PS_PER_NS;
}

void trace_count_device(struct trace_devices *devices, int64_t device)
{
    for (int i = 0; i < devices->numbers.n; i++)
        if (devices->numbers.at[i] == device)
            return;
    if (devices->numbers.n == 0 || device < devices->lowest)
        devices->lowest = device;
    vec_push(&devices->numbers, device);
}

enum status trace_no_device(const struct trace *trace, int64_t device, const char *file, struct diag *diag)
{
    return diag_input(diag, (struct source_pos){.file = file}, "no kernel of GPU %lld in it, but of %d other%s",
        (long long)device, trace->devices, plural(trace->devices));
}

enum status trace_load(struct trace *out, const char *path, int64_t device, struct arena *arena, struct diag *diag)
{
    static const char sqlite_begins[] = "SQLite format 3"; /* a file of JSON begins with { or [ */
    struct input *input = NULL;
    char first = '\0';
    *out = (struct trace){.rank = -1};
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = input_peek(input, &first, diag);
    if (status == STATUS_OK && first == sqlite_begins[0])
        status = trace_read_nsys(out, path, device, arena, diag);
    else if (status == STATUS_OK)
        status = trace_read_kineto(out, input, device, arena, diag);
    input_close(input);
    return status;
}
