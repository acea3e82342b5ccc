/* Ranks as a grid of axes, and the process groups that are cut out of it.
 *
 * mesh_build() walks the order from its innermost word outwards and gives each axis the product of
 * the sizes before it as its stride. A rank's coordinate on an axis is then rank / stride % size,
 * and nothing has to be stored per rank.
 *
 * A group is five numbers: size and stride of its members, and width, period and offset of the
 * pattern in which its instances repeat over all ranks. Every question about a group (how many
 * instances, which is a rank's, which rank is first) is arithmetic on these. A set of axes is one
 * group only if no other axis lies between them: the product of their sizes times the smallest
 * stride must reach exactly to the end of their span. Axes of size 1 take no room and are skipped,
 * so an order may name them anywhere.
 *
 * The second grid of experts (mesh_fold) has strides of other sizes over the same ranks. Only
 * extent_of() chooses between the grids; coordinates and neighbours are always those of the
 * first. */
#include "mesh/mesh.h"

#include "base/status.h"

#include <string.h>

const char *const mesh_axis_names[] = {"tp", "cp", "ep", "dp_shard", "dp_replicate", "pp", NULL};
const char *const mesh_order_default = "tp-ep-cp-dp-pp";

/* The axes that a word of an order stands for; 0: none. */
static unsigned mesh_axes_of(const char *word, size_t length)
{
    for (int a = 0; a < AXIS_COUNT; a++)
        if (strlen(mesh_axis_names[a]) == length && strncmp(word, mesh_axis_names[a], length) == 0)
            return 1U << a;
    return length == 2 && strncmp(word, "dp", 2) == 0 ? AXES_DP : 0;
}

/* The loop over a word's axes gives "dp" its two strides in the order of enum mesh_axis, the
 * sharded axis inside. An axis that the order leaves out must have size 1; its coordinate is always
 * 0, whatever its stride. */
bool mesh_build(struct mesh *out, const int size[AXIS_COUNT], const char *order, const char **bad)
{
    unsigned seen = 0;
    *out = (struct mesh){.ranks = 1};
    for (int a = 0; a < AXIS_COUNT; a++)
        out->size[a] = size[a] > 0 ? size[a] : 1;
    for (const char *word = order; *word;) {
        size_t length = strcspn(word, "-");
        unsigned axes = mesh_axes_of(word, length);
        *bad = word;
        if (axes == 0 || (axes & seen))
            return false;
        seen |= axes;
        for (int a = 0; a < AXIS_COUNT; a++)
            if (axes & 1U << a) {
                out->stride[a] = out->ranks;
                out->ranks *= out->size[a];
            }
        word += length + (word[length] == '-');
    }
    *bad = order + strlen(order);
    for (int a = 0; a < AXIS_COUNT; a++)
        if (!(seen & 1U << a)) {
            if (out->size[a] > 1)
                return false;
            out->stride[a] = out->ranks;
        }
    return true;
}

/* Stages must be the same ranks in both grids, as a pipeline sends between them whatever the grid
 * of the layer is. */
bool mesh_fold(struct mesh *mesh, const int size[AXIS_COUNT], const char *order)
{
    struct mesh grid;
    const char *bad;
    bool built = mesh_build(&grid, size, order, &bad);
    BUG_IF(!built || grid.ranks != mesh->ranks, "a grid of %d ranks beside one of %d", grid.ranks,
        mesh->ranks);
    mesh->folded = true;
    memcpy(mesh->expert_size, grid.size, sizeof grid.size);
    memcpy(mesh->expert_stride, grid.stride, sizeof grid.stride);
    return grid.size[AXIS_PP] == mesh->size[AXIS_PP] &&
           grid.stride[AXIS_PP] == mesh->stride[AXIS_PP];
}

struct mesh mesh_data_parallel(int ranks, int shard)
{
    BUG_IF(shard < 1 || ranks < 1 || ranks % shard != 0, "%d ranks in shards of %d", ranks, shard);
    struct mesh mesh;
    const char *bad;
    int size[AXIS_COUNT] = {[AXIS_DP_SHARD] = shard, [AXIS_DP_REPLICATE] = ranks / shard};
    bool built = mesh_build(&mesh, size, mesh_order_default, &bad);
    BUG_IF(!built, "%s", bad);
    return mesh;
}

int mesh_coordinate(const struct mesh *mesh, int rank, enum mesh_axis axis)
{
    return rank / mesh->stride[axis] % mesh->size[axis];
}

int mesh_neighbour(const struct mesh *mesh, int rank, enum mesh_axis axis, int delta)
{
    int size = mesh->size[axis], at = mesh_coordinate(mesh, rank, axis),
        to = ((at + delta) % size + size) % size;
    return rank + (to - at) * mesh->stride[axis];
}

/* How many ranks these axes have, their smallest stride and where their span ends. */
struct extent {
    int size, stride, end;
};

static struct extent extent_of(const struct mesh *mesh, unsigned axes)
{
    struct extent extent = {1, 0, 0};
    bool second = mesh->folded && (axes & AXES_OF_EXPERT_GRID);
    const int *sizes = second ? mesh->expert_size : mesh->size,
              *strides = second ? mesh->expert_stride : mesh->stride;
    for (int a = 0; a < AXIS_COUNT; a++) {
        int stride = strides[a], end = strides[a] * sizes[a];
        if (!(axes & 1U << a) || sizes[a] == 1)
            continue;
        extent.size *= sizes[a];
        extent.stride = extent.stride == 0 || stride < extent.stride ? stride : extent.stride;
        extent.end = end > extent.end ? end : extent.end;
    }
    return extent;
}

int mesh_degree(const struct mesh *mesh, unsigned axes)
{
    return extent_of(mesh, axes).size;
}

bool mesh_axes_are_side_by_side(const struct mesh *mesh, unsigned axes)
{
    struct extent extent = extent_of(mesh, axes);
    return extent.stride * extent.size == extent.end || extent.size == 1;
}

struct mesh_group mesh_group(const struct mesh *mesh, unsigned axes)
{
    struct extent extent = extent_of(mesh, axes);
    if (extent.size == 1)
        return (struct mesh_group){1, 1, 1, 1, 0};
    BUG_IF(!mesh_axes_are_side_by_side(mesh, axes), "axes %x do not lie side by side", axes);
    return (struct mesh_group){
        .size = extent.size, .stride = extent.stride, .width = extent.stride, .period = extent.end};
}

struct mesh_group mesh_pair(const struct mesh *mesh, enum mesh_axis axis, int first, int second)
{
    int stride = mesh->stride[axis];
    BUG_IF(first < 0 || second <= first || second >= mesh->size[axis], "places %d and %d of %d",
        first, second, mesh->size[axis]);
    return (struct mesh_group){.size = 2,
        .stride = (second - first) * stride,
        .width = stride,
        .period = stride * mesh->size[axis],
        .offset = first * stride};
}

bool mesh_group_same(const struct mesh_group *a, const struct mesh_group *b)
{
    return a->size == b->size && a->stride == b->stride && a->width == b->width &&
           a->period == b->period && a->offset == b->offset;
}

bool mesh_group_is_valid(const struct mesh_group *group, int ranks)
{
    return group->size >= 1 && group->stride >= 1 && group->width >= 1 &&
           group->width <= group->stride && group->offset >= 0 && group->period >= 1 &&
           ranks % group->period == 0 &&
           group->offset + (group->size - 1) * group->stride + group->width <= group->period;
}

int mesh_group_instances(const struct mesh_group *group, int ranks)
{
    return ranks / group->period * group->width;
}

int mesh_group_first(const struct mesh_group *group, int instance)
{
    return instance / group->width * group->period + group->offset + instance % group->width;
}

/* Undoes mesh_group_first(): the period says which repetition, the place within a stride which
 * instance of it. */
int mesh_group_instance(const struct mesh_group *group, int rank)
{
    int place = rank % group->period - group->offset, within = place % group->stride;
    if (place < 0 || within >= group->width || place / group->stride >= group->size)
        return -1;
    return rank / group->period * group->width + within;
}

/* Walks each instance member by member and counts those before the next node begins, in time linear
 * in the ranks. */
bool mesh_group_lies_evenly(const struct mesh_group *group, int ranks, int node)
{
    int each = 0;
    for (int i = 0; i < mesh_group_instances(group, ranks); i++)
        for (int m = 0, here = 0, first = mesh_group_first(group, i); m < group->size; m++) {
            int rank = first + m * group->stride;
            here++;
            if (m + 1 < group->size && (rank + group->stride) / node == rank / node)
                continue;
            if (each > 0 && here != each)
                return false;
            each = here;
            here = 0;
        }
    return true;
}
