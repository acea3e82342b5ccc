/* The matrix of `nvidia-smi topo -m`, from between whatever a person pasted around it.
 *
 * The header is the first line that begins with GPU0 and has no cells; rows are lines of GPUn
 * and cells; quote marks, table bars and colours of a terminal count as blanks. What is subtle:
 * a GPU behind NVSwitch has all its links in every cell, in a mesh the cells add up; which of
 * both it is shows where the sum is more than a GPU can have. NICs count that are behind the PCI
 * switch of a GPU (PIX, PXB), if any is. */
#include "foreign/topology_file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 2 * TOPOLOGY_MAX_GPUS, MAX_WORDS = MAX_COLUMNS + 16 };

enum {
    CELL_NONE = -1,
    CELL_SELF = -2,
    CELL_SWITCH = -3,
    CELL_FAR = -4
}; /* 0 and more: the number of NVLinks */

struct matrix {
    struct input *input;
    struct arena *arena;
    struct diag *diag;
    enum status status;
    int header_line, n_columns, gpus;
    const char *columns[MAX_COLUMNS];
    int *links;     /* gpus x gpus */
    bool *seen;     /* GPUs whose row was there */
    bool *is_close; /* columns that are behind the PCI switch of a GPU */
};

struct words {
    char *at[MAX_WORDS];
    int n;
};

/* Colours and underlines of a terminal, ESC [ ... letter, become blanks. */
static void blank_escapes(char *text)
{
    for (char *c = strchr(text, '\x1b'); c; c = strchr(c, '\x1b')) {
        *c++ = ' ';
        while (*c && !isalpha((unsigned char)*c))
            *c++ = ' ';
        if (*c)
            *c = ' ';
    }
}

/* Words between blanks; marks of a quote or a table are blanks too. */
static void topology_matrix_split(struct words *out, char *text)
{
    char *rest = NULL;
    out->n = 0;
    for (char *word = strtok_r(text, " \t>|\r", &rest); word && out->n < MAX_WORDS;
         word = strtok_r(NULL, " \t>|\r", &rest))
        out->at[out->n++] = word;
}

/* The number of "GPU12", -1 for any other word. */
static int gpu_number(const char *word)
{
    if (strncmp(word, "GPU", 3) != 0 || strlen(word) > 7 || !word[3] ||
        word[3 + strspn(word + 3, "0123456789")])
        return -1;
    return atoi(word + 3);
}

static int topology_matrix_cell(const char *word)
{
    static const struct {
        const char *word;
        int kind;
    } kinds[] = {{"X", CELL_SELF}, {"PIX", CELL_SWITCH}, {"PXB", CELL_SWITCH}, {"PHB", CELL_FAR},
        {"NODE", CELL_FAR}, {"SYS", CELL_FAR}, {"SOC", CELL_FAR}, {"N/A", CELL_FAR}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(word, kinds[i].word) == 0)
            return kinds[i].kind;
    if (strncmp(word, "NV", 2) == 0 && strlen(word) <= 5 && word[2] &&
        !word[2 + strspn(word + 2, "0123456789")])
        return atoi(word + 2);
    return CELL_NONE;
}

static void topology_matrix_refuse(struct matrix *m, int line, const char *sentence)
{
    m->status =
        diag_input(m->diag, (struct source_pos){input_name(m->input), line, 1}, "%s", sentence);
}

/* The first line whose words begin with GPU0 and are no cells: GPUs in order, NICs, then "CPU
 * Affinity" and so on. Columns end where "CPU Affinity" or "NUMA" begins. */
static void take_header(struct matrix *m, const struct words *words, int line)
{
    if (words->n == 0 || gpu_number(words->at[0]) != 0 ||
        (words->n > 1 && topology_matrix_cell(words->at[1]) != CELL_NONE))
        return;
    int n = 0;
    while (n < words->n && n < MAX_COLUMNS && strcmp(words->at[n], "CPU") != 0 &&
           strcmp(words->at[n], "NUMA") != 0) {
        int gpu = gpu_number(words->at[n]);
        if (gpu >= 0 && (gpu != m->gpus || n != m->gpus || gpu == TOPOLOGY_MAX_GPUS)) {
            topology_matrix_refuse(
                m, line, "the columns must be GPU0, GPU1, ... in order, then NICs");
            return;
        }
        m->gpus += gpu >= 0;
        m->columns[n] = arena_strdup(m->arena, words->at[n]);
        n++;
    }
    m->n_columns = n;
    m->header_line = line;
    m->links = ARENA_ARRAY(m->arena, int, m->gpus * m->gpus);
    m->seen = ARENA_ARRAY(m->arena, bool, m->gpus);
    m->is_close = ARENA_ARRAY(m->arena, bool, n);
}

static bool crosses_itself(const struct words *words, int gpu, int columns)
{
    for (int c = 0; c < columns; c++)
        if ((topology_matrix_cell(words->at[c + 1]) == CELL_SELF) != (c == gpu))
            return false;
    return true;
}

/* Both halves of the matrix are read and must agree (topology_matrix_check()). */
static void topology_matrix_take_row(struct matrix *m, const struct words *words, int line)
{
    int gpu = words->n > 1 ? gpu_number(words->at[0]) : -1;
    if (gpu < 0 || topology_matrix_cell(words->at[1]) == CELL_NONE)
        return;
    int cells = 0;
    while (cells + 1 < words->n && cells < m->n_columns &&
           topology_matrix_cell(words->at[cells + 1]) != CELL_NONE)
        cells++;
    char text[160];
    if (gpu >= m->gpus)
        snprintf(text, sizeof text, "a row of GPU%d, which has no column", gpu);
    else if (m->seen[gpu])
        snprintf(text, sizeof text, "GPU%d a second time; give one matrix", gpu);
    else if (cells < m->n_columns)
        snprintf(text, sizeof text,
            "GPU%d has %d cells of %d (X, NV#, PIX, PXB, PHB, NODE, SYS); the line may be cut", gpu,
            cells, m->n_columns);
    else if (!crosses_itself(words, gpu, m->n_columns))
        snprintf(
            text, sizeof text, "GPU%d: X is wanted below its own column, and below no other", gpu);
    else
        *text = '\0';
    if (*text) {
        topology_matrix_refuse(m, line, text);
        return;
    }
    m->seen[gpu] = true;
    for (int c = 0; c < m->n_columns; c++) {
        int kind = topology_matrix_cell(words->at[c + 1]);
        if (c < m->gpus && kind > TOPOLOGY_MAX_LINKS)
            topology_matrix_refuse(m, line, "a GPU has at most 18 NVLinks");
        else if (c < m->gpus && kind > 0)
            m->links[gpu * m->gpus + c] = kind;
        else if (c >= m->gpus && kind == CELL_SWITCH)
            m->is_close[c] = true;
    }
}

static enum status read_lines(struct matrix *m)
{
    struct words *words = xcalloc(1, sizeof *words);
    struct input_line line = {0};
    size_t bytes = 0;
    enum status status = STATUS_OK;
    while ((status = input_line(m->input, &line, m->diag)) == STATUS_OK && line.text &&
           m->status == STATUS_OK) {
        bytes += strlen(line.text);
        if (bytes > TOPOLOGY_MAX_BYTES) {
            topology_matrix_refuse(m, line.number, "this is no topology: it does not end");
            break;
        }
        blank_escapes(line.text);
        topology_matrix_split(words, line.text);
        if (m->header_line == 0)
            take_header(m, words, line.number);
        else
            topology_matrix_take_row(m, words, line.number);
    }
    free(words);
    return status != STATUS_OK ? status : m->status;
}

static enum status topology_matrix_check(const struct matrix *m)
{
    struct source_pos at = {input_name(m->input), m->header_line, 1};
    if (m->header_line == 0)
        return diag_input(m->diag, (struct source_pos){.file = input_name(m->input)},
            "neither XML of NCCL (NCCL_TOPO_DUMP_FILE) nor a matrix of `nvidia-smi topo -m`: no "
            "line of columns GPU0 GPU1 ...");
    for (int a = 0; a < m->gpus; a++) {
        if (!m->seen[a])
            return diag_input(m->diag, at, "no row of GPU%d", a);
        for (int b = 0; b < a; b++)
            if (m->links[a * m->gpus + b] != m->links[b * m->gpus + a])
                return diag_input(m->diag, at,
                    "GPU%d and GPU%d do not agree on their NVLinks: %d and %d", b, a,
                    m->links[b * m->gpus + a], m->links[a * m->gpus + b]);
    }
    return STATUS_OK;
}

/* NVLinks of a GPU: of a switch what every cell says, of a mesh the sum of the cells. */
static enum status topology_matrix_judge_links(struct topology_dump *out, const struct matrix *m)
{
    int least = -1, most_cell = 0;
    for (int a = 0; a < m->gpus; a++) {
        int sum = 0;
        for (int b = 0; b < m->gpus; b++) {
            sum += m->links[a * m->gpus + b];
            most_cell =
                m->links[a * m->gpus + b] > most_cell ? m->links[a * m->gpus + b] : most_cell;
        }
        least = least < 0 || sum < least ? sum : least;
    }
    bool joined = m->gpus > 1 && topology_joined(m->links, m->gpus);
    out->fabric = !joined ? HW_PCIE : least > TOPOLOGY_MAX_LINKS ? HW_NVSWITCH : HW_NVLINK_MESH;
    out->links = !joined ? 0 : least > TOPOLOGY_MAX_LINKS ? most_cell : least;
    if (joined)
        return STATUS_OK;
    return topology_judge_bridges(out, m->links,
        (struct source_pos){input_name(m->input), m->header_line, 1}, m->arena, m->diag);
}

static void topology_matrix_judge_nics(struct topology_dump *out, const struct matrix *m)
{
    int nics = m->n_columns - m->gpus, close = 0;
    const char *far = NULL;
    for (int c = m->gpus; c < m->n_columns; c++) {
        close += m->is_close[c];
        far = far || m->is_close[c] ? far : m->columns[c];
    }
    out->nics = close > 0 ? close : nics;
    if (close > 0 && close < nics)
        vec_push(&out->remarks,
            arena_printf(m->arena,
                "NICs not behind the PCI switch of a GPU (PIX, PXB), while others are, are left "
                "out: %d, as %s.",
                nics - close, far));
}

enum status topology_read_matrix(
    struct topology_dump *out, struct input *input, struct arena *arena, struct diag *diag)
{
    struct matrix *m = xcalloc(1, sizeof *m);
    m->input = input;
    m->arena = arena;
    m->diag = diag;
    out->how = "nvidia-smi topo -m";
    enum status status = read_lines(m);
    if (status == STATUS_OK)
        status = topology_matrix_check(m);
    if (status == STATUS_OK) {
        out->gpus = m->gpus;
        topology_matrix_judge_nics(out, m);
        status = topology_matrix_judge_links(out, m);
    }
    free(m);
    return status;
}
