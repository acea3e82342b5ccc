/* What a machine may be like, given how well its parameters are known: a draw of every number of kind fitted, GPU, node
 * and cluster, from a normal distribution of its value and standard error, cut at the bounds of its table. Numbers of
 * other kinds stay: nothing is known of their error.
 *
 * The files carry standard errors, not covariances, so parameters of one fit are drawn as if independent; where a fit
 * trades one for the other (a latency for a bandwidth) that is too wide. A number that stands in several places with
 * the same name, value, error and source is one parameter and gets one draw, in whatever file or point it is. */
#ifndef FLOPCAST_HW_DRAW_H
#define FLOPCAST_HW_DRAW_H

#include "hw/hw.h"

#include <stdint.h>

/* The draw number `draw` of a seed; the same for the same machine, whatever was drawn before. */
void hw_draw(struct hw *hw, uint64_t seed, uint64_t draw);

#endif
