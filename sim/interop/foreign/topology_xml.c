/* NCCL's topology file (NCCL_TOPO_DUMP_FILE), an XML tree of cpu, pci, gpu, nvlink, nic and net
 * elements, as lists of devices.
 *
 * expat calls on_open() and on_close(); the stack of open pci elements carries the narrowest
 * link so far, which is what a device below can reach. What is subtle: the file comes from
 * elsewhere, so its size, depth and the length of attributes are bounded, and a document type
 * (entities) is refused; a mistake does not stop the parser at once, so several are reported;
 * RCCL's files look alike but have gcn in place of sm and are refused with what to do. */
#include "foreign/topology_file.h"

#include <expat.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* An open pci element. */
struct pci {
    const char *busid, *device;
    double Bps;   /* of the narrowest of this link and those above it */
    bool guessed; /* the speed of that link is not known */
    int depth;
    int gpu; /* the gpu in it, -1 */
};

struct reader {
    XML_Parser expat;
    struct input *input;
    struct arena *arena;
    struct diag *diag;
    enum status status;
    size_t bytes;
    int depth, n_pci, cpus;
    int version; /* of the file */
    struct pci pci[TOPOLOGY_MAX_DEPTH];
    struct topology_devices *found;
};

static void topology_xml_refuse(struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void topology_xml_refuse(struct reader *r, const char *format, ...)
{
    va_list args;
    char text[256];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct source_pos at = {input_name(r->input), (int)XML_GetCurrentLineNumber(r->expat),
        (int)XML_GetCurrentColumnNumber(r->expat) + 1};
    r->status = diag_input(r->diag, at, "%s", text);
    if (r->diag->n_errors >= DIAG_MAX_ERRORS)
        XML_StopParser(r->expat, XML_FALSE);
}

static const char *topology_xml_attribute(const char **attributes, const char *name)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

/* The attribute; NULL where it is not there, or empty, which names nothing. */
static const char *filled(const char **attributes, const char *name)
{
    const char *text = topology_xml_attribute(attributes, name);
    return text && *text ? text : NULL;
}

/* A whole number from low to high; `missing` where the attribute is not there or empty. */
static int topology_xml_number(
    struct reader *r, const char **attributes, const char *name, int low, int high, int missing)
{
    const char *text = filled(attributes, name);
    if (!text)
        return missing;
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= low && value <= high)
        return (int)value;
    topology_xml_refuse(
        r, "%s is '%.40s'; a whole number from %d to %d is wanted", name, text, low, high);
    return missing;
}

/* NCCL's rule for a PCI link: GB/s = lanes x rate / 80, where x16 of generation 3 makes 12 GB/s
 * (src/graph/topo.h). A width of 0 stands for 16, and a link of unknown speed for generation 3, as
 * NCCL takes them. */
static double pci_Bps(const char *speed, int width, bool *unknown)
{
    static const struct {
        const char *speed;
        int rate;
    } generations[] = {{"2.5 GT/s", 15}, {"5 GT/s", 30}, {"5.0 GT/s", 30}, {"8 GT/s", 60},
        {"8.0 GT/s", 60}, {"16 GT/s", 120}, {"16.0 GT/s", 120}, {"32 GT/s", 240},
        {"32.0 GT/s", 240}, {"64 GT/s", 480}, {"64.0 GT/s", 480}};
    static const int generation_3 = 60, full_width = 16;
    int rate = 0;
    for (size_t i = 0; speed && i < sizeof generations / sizeof *generations; i++)
        if (strncmp(speed, generations[i].speed, strlen(generations[i].speed)) == 0)
            rate = generations[i].rate;
    *unknown = rate == 0;
    return (width > 0 ? width : full_width) * (rate > 0 ? rate : generation_3) / 80.0 * 1e9;
}

/* A link is no faster than those above it. */
static void open_pci(struct reader *r, const char **attributes)
{
    const char *busid = filled(attributes, "busid"), *device = filled(attributes, "device");
    int width = topology_xml_number(r, attributes, "link_width", 0, 64, 0);
    if (!busid)
        topology_xml_refuse(r, "a pci element without busid");
    struct pci pci = {
        .busid = arena_strdup(r->arena, busid ? busid : ""), .depth = r->depth, .gpu = -1};
    if (device)
        pci.device = arena_strdup(r->arena, device);
    pci.Bps = pci_Bps(topology_xml_attribute(attributes, "link_speed"), width, &pci.guessed);
    if (r->n_pci > 0 && r->pci[r->n_pci - 1].Bps < pci.Bps) {
        pci.Bps = r->pci[r->n_pci - 1].Bps;
        pci.guessed = r->pci[r->n_pci - 1].guessed;
    }
    r->pci[r->n_pci++] = pci;
}

static void open_gpu(struct reader *r, const char **attributes)
{
    if (r->n_pci == 0) {
        topology_xml_refuse(r, "a gpu that is in no pci element");
        return;
    }
    if (r->found->gpus.n == TOPOLOGY_MAX_GPUS) {
        topology_xml_refuse(r, "more than %d GPUs", TOPOLOGY_MAX_GPUS);
        return;
    }
    struct pci *pci = &r->pci[r->n_pci - 1];
    if (filled(attributes, "gcn")) { /* what counts before the version, which is RCCL's own */
        topology_xml_refuse(r,
            "a GPU of AMD's (%.20s), as RCCL writes it; nodes of Volta to Blackwell are made of "
            "such files: copy topologies/nodes/8x-mi300x.yaml or 8x-mi355x.yaml and change what "
            "differs",
            filled(attributes, "gcn"));
        XML_StopParser(r->expat, XML_FALSE);
        return;
    }
    if (!filled(attributes, "sm"))
        topology_xml_refuse(r, "a gpu without sm, its compute capability (90 for 9.0)");
    for (int i = 0; i < r->found->gpus.n; i++) /* their NVLinks could not be distinguished */
        if (strcasecmp(r->found->gpus.at[i].busid, pci->busid) == 0) {
            topology_xml_refuse(r, "a second gpu at busid '%.40s'; one machine a file", pci->busid);
            break;
        }
    pci->gpu = r->found->gpus.n;
    vec_push(&r->found->gpus, (struct topology_gpu){.busid = pci->busid,
                                  .device = pci->device,
                                  .sm = topology_xml_number(r, attributes, "sm", 10, 999, 0),
                                  .pcie_Bps = pci->Bps,
                                  .pcie_guessed = pci->guessed,
                                  .cpu = r->cpus});
}

/* Targets are GPUs (PCI class 0x03....), switches (0x068000) or POWER CPUs (0x068001), whose links
 * carry no traffic between GPUs. */
static void open_nvlink(struct reader *r, const char **attributes)
{
    int gpu = r->n_pci > 0 ? r->pci[r->n_pci - 1].gpu : -1;
    const char *target = filled(attributes, "target"), *class = filled(attributes, "tclass");
    if (gpu < 0) {
        topology_xml_refuse(r, "an nvlink that is in no gpu");
        return;
    }
    if (!target || !filled(attributes, "count")) {
        topology_xml_refuse(r, "an nvlink without target or count");
        return;
    }
    if (strcasecmp(target, r->pci[r->n_pci - 1].busid) == 0)
        topology_xml_refuse(r, "an nvlink from a gpu to itself");
    int count = topology_xml_number(r, attributes, "count", 1, TOPOLOGY_MAX_LINKS, 0);
    bool to_switch = class && strcmp(class, "0x068000") == 0,
         to_gpu = class && strncmp(class, "0x03", 4) == 0;
    if (class && !to_switch && !to_gpu)
        return;
    r->found->gpus.at[gpu].links += count;
    vec_push(&r->found->nvlinks,
        (struct topology_nvlink){gpu, count, arena_strdup(r->arena, target), to_switch, to_gpu});
    if (r->found->gpus.at[gpu].links > TOPOLOGY_MAX_LINKS)
        topology_xml_refuse(r, "more than %d NVLinks of one GPU", TOPOLOGY_MAX_LINKS);
}

/* NCCL's rule for a NIC: GB/s = Mb/s / 8000, and 10 Gb/s for one of unknown speed
 * (src/graph/topo.cc). */
static void open_net(struct reader *r, const char **attributes)
{
    static const int unknown_Mbps = 10000,
                     least_Mbps = 1000; /* below it no node file would take it */
    const char *name = topology_xml_attribute(attributes, "name");
    int Mbps = topology_xml_number(r, attributes, "speed", -1, 100000000, 0);
    if (Mbps <= 0)
        Mbps = unknown_Mbps;
    if (Mbps < least_Mbps)
        topology_xml_refuse(r, "a NIC of %d Mb/s; collectives need at least %d", Mbps, least_Mbps);
    vec_push(&r->found->nics,
        (struct topology_nic){name ? arena_strdup(r->arena, name) : "?", Mbps / 8000.0 * 1e9,
            r->n_pci > 0 ? r->pci[r->n_pci - 1].Bps : HUGE_VAL});
}

static void XMLCALL on_open(void *self, const char *name, const char **attributes)
{
    struct reader *r = self;
    r->depth++;
    for (int i = 0; attributes[i]; i++)
        if (strlen(attributes[i]) > TOPOLOGY_MAX_VALUE_BYTES) {
            topology_xml_refuse(r, "an attribute of more than %d bytes", TOPOLOGY_MAX_VALUE_BYTES);
            XML_StopParser(r->expat, XML_FALSE);
            return;
        }
    if (r->depth > TOPOLOGY_MAX_DEPTH) {
        topology_xml_refuse(r, "nested more than %d levels deep", TOPOLOGY_MAX_DEPTH);
        XML_StopParser(r->expat, XML_FALSE);
    } else if (r->depth == 1) {
        r->version = topology_xml_number(r, attributes, "version", 0, 1000, 1);
        if (strcmp(name, "system") != 0) {
            topology_xml_refuse(r, "the root is '%.40s'; NCCL writes 'system'", name);
            XML_StopParser(r->expat, XML_FALSE);
        }
    } else if (strcmp(name, "cpu") == 0) {
        r->cpus++;
    } else if (strcmp(name, "pci") == 0) {
        open_pci(r, attributes);
    } else if (strcmp(name, "gpu") == 0) {
        open_gpu(r, attributes);
    } else if (strcmp(name, "nvlink") == 0) {
        open_nvlink(r, attributes);
    } else if (strcmp(name, "net") == 0) {
        open_net(r, attributes);
    }
}

/* The pci element that ends is the one opened at this depth. */
static void XMLCALL on_close(void *self, const char *name)
{
    struct reader *r = self;
    (void)name;
    if (r->n_pci > 0 && r->pci[r->n_pci - 1].depth == r->depth)
        r->n_pci--;
    r->depth--;
}

static void XMLCALL on_doctype(
    void *self, const char *name, const char *system, const char *public, int has_subset)
{
    struct reader *r = self;
    (void)name, (void)system, (void)public, (void)has_subset;
    topology_xml_refuse(
        r, "a document type declaration; NCCL writes none, and entities are not expanded");
    XML_StopParser(r->expat, XML_FALSE);
}

static enum status topology_xml_parse(struct reader *r)
{
    for (;;) {
        const char *bytes = NULL;
        size_t n = 0;
        enum status status = input_chunk(r->input, &bytes, &n, r->diag);
        if (status != STATUS_OK)
            return status;
        r->bytes += n;
        if (r->bytes > TOPOLOGY_MAX_BYTES)
            return diag_input(r->diag, (struct source_pos){.file = input_name(r->input)},
                "more than %d MiB; this is no topology", TOPOLOGY_MAX_BYTES >> 20);
        if (XML_Parse(r->expat, bytes, (int)n, n == 0) == XML_STATUS_ERROR) {
            if (XML_GetErrorCode(r->expat) !=
                XML_ERROR_ABORTED) /* else the reason has been reported */
                topology_xml_refuse(r, "no XML: %s", XML_ErrorString(XML_GetErrorCode(r->expat)));
            return r->status;
        }
        if (n == 0)
            return r->status;
    }
}

enum status topology_read_xml(
    struct topology_devices *devices, struct input *input, struct arena *arena, struct diag *diag)
{
    struct reader *r = xcalloc(1, sizeof *r);
    r->input = input;
    r->arena = arena;
    r->diag = diag;
    r->found = devices;
    r->expat = XML_ParserCreate(NULL);
    BUG_IF(!r->expat, "out of memory");
    XML_SetUserData(r->expat, r);
    XML_SetElementHandler(r->expat, on_open, on_close);
    XML_SetStartDoctypeDeclHandler(r->expat, on_doctype);
    enum status status = topology_xml_parse(r);
    if (status == STATUS_OK && r->version != 1)
        status = diag_input(diag, (struct source_pos){input_name(input), 1, 1},
            "version %d; only 1 is known", r->version);
    if (status == STATUS_OK && devices->gpus.n == 0)
        status = diag_input(diag, (struct source_pos){.file = input_name(input)}, "no gpu in it");
    XML_ParserFree(r->expat);
    free(r);
    return status;
}
