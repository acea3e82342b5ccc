/* Private to strategy/: what passes between the stages of a pipeline, and which micro-batches are
 * under way.
 *
 * A model chunk whose input another stage sends begins with a SEGMENT_BORDER: its output is what
 * was received, its output's gradient what is sent back. Activations go to the next stage, from the
 * last one to the first one's next chunk; gradients the other way. Each direction has a queue to
 * send on and one to receive on, as ncclGroupStart joins them (Megatron's batch_isend_irecv) or
 * several communicators run beside one another.
 *
 * Without overlap_p2p_comm the next cell begins when the message of the one before has gone and the
 * next one has come, and the host waits for both (batch_p2p_sync: cuda.synchronize()). With it the
 * next receive of the same direction is posted behind each cell, and only who needs a message waits
 * for it.
 *
 * In a V (schedule.h) activations go to the next stage on the first leg, to the previous one on the
 * second, gradients the other way, each on separate queues, and messages always overlap: PyTorch's
 * runtime posts receives ahead and waits for sends at the end of the step only. At the turn,
 * between the chunks of the last stage, there is no message: the tensor stays where it is. Ignored:
 * that there all messages of a rank share one NCCL stream, in the order that its simulation of the
 * schedule finds; buffers of every micro-batch's messages from the first step on.
 *
 * p2p_metadata (nanotron/parallel/pipeline_parallel/p2p.py): two messages describe a tensor before
 * it is sent, and the host of who receives it waits for both. Forward there are two tensors, the
 * activation and a mask of a byte a token. With p2p_poll_s either side looks for a message that is
 * on its way after sleeping so long, at least once (of a message that comes later, not the rest of
 * the interval).
 *
 * pipe_partitioned (deepspeed/runtime/pipe/engine.py's is_pipe_partitioned, PartitionedTensor):
 * where there is tensor parallelism each of its ranks sends its part of what all of them have,
 * behind a message of 7 numbers and one for each rank, which the host of who receives it waits for;
 * the parts are gathered there. Of its output a stage keeps a part, too, which it gathers before
 * the backward pass.
 *
 * merge_outputs (torch/distributed/pipelining, stage.py's output_chunks and schedules.py's
 * _merge_outputs): what the model gives back, the logits, stays on the stage with the head for each
 * micro-batch until the passes of the step are done; then torch.cat makes one of all, and they are
 * let go of. Logits: what the last product of the last segment makes.
 *
 * Ignored: that what is received is cleared before and copied behind (DeepSpeed); the part that is
 * kept; exchanges of shapes but these; Megatron's synchronous messages in warm-up and cool-down
 * with overlap_p2p_comm. */
#ifndef FLOPCAST_STRATEGY_PIPELINE_H
#define FLOPCAST_STRATEGY_PIPELINE_H

#include "strategy/emit.h"

/* The segments of each chunk, after emit->segments were laid out. */
void pipeline_lay_out(struct emit *emit);
/* Takes the place of emit->saved: the tensors of a cell's micro-batch and chunk, which begin with
 * its forward pass and end with the last of its backward cells. */
void pipeline_take_flight(struct emit *emit, struct cell cell);
void pipeline_end_flight(struct emit *emit, struct cell cell);
/* Before a cell: what it needs is received. After it: what it made is sent. cells[i] of n. */
void pipeline_before(struct emit *emit, const struct cell *cells, int n, int i);
void pipeline_after(struct emit *emit, const struct cell *cells, int n, int i);
/* After a forward cell; after the last cell of a step. */
void pipeline_keep_output(struct emit *emit, struct cell cell);
void pipeline_merge_outputs(struct emit *emit);

#endif
