// Loops of the program whose scalars live on the GPU: pwx_loop_begin, pwx_loop_next and pwx_loop_end of
// acc.h. An iteration that consists of launches in order is recorded, and the rest of the loop is one launch
// of a CUDA graph with conditional nodes.
#pragma once

#include <cstdint>

#include "base/setting.h"

namespace pwx {

struct Reflect;

namespace settings {

enum class Loops : uint8_t { graph, steps, host };
extern const pw::ChoiceSetting<Loops> acc_loops;

}  // namespace settings

/// Ends the recording of an iteration that uses the GPU in another way, if earlier ones may have done so,
/// too: executes what was recorded of it. Returns false if nothing else was to be expected than launches.
bool stop_recording_loop();

/// Notes that a loop that runs now has this reflect, if one runs. All ranks note it, also those that have
/// nothing to transfer.
void note_reflect_of_loop(Reflect& reflect);
/// Registers what makes the halos of a reflect count as old, for the layer above, which knows what it is.
void notify_halos(void (*halos_are_old)(Reflect& reflect));

/// Prepares what graphs of loops need, if the program has such loops, so that the first one need not.
void prepare_loops();

/// Destroys the graphs of all loops. Call it when a plan ends, since graphs may contain it.
void forget_loop_graphs();
/// Call it before the context ends.
void free_loops();

}  // namespace pwx
