// Statements that synchronise images: sync, post and wait.
#pragma once

namespace pwx {

/// Every statement that synchronises images begins with this. It completes what this image did before: its
/// kernels, which write coarrays, too, and its transfers at the other images.
void complete_segment();

}  // namespace pwx
