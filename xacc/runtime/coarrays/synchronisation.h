// The statements that synchronise images: sync, post and wait.
#pragma once

namespace pwx {

/// Completes this image's earlier work: its kernels, which may write coarrays, and its transfers at other
/// images. Every statement that synchronises images begins with this.
void complete_segment();

}  // namespace pwx
