// The statements that synchronise images: sync, post and wait; and which images there are.
#pragma once

#include <string>

namespace pwx {

/// Completes this image's earlier work: its kernels, which may write coarrays, and its transfers at other
/// images. Every statement that synchronises images begins with this.
void complete_segment();

/// The rank of an image. The images are the nodes that execute: those of the task, counted from 0. Throws
/// Failure, which begins with `action`, if there is no such image.
int rank_of_image(long image, const std::string& action);

}  // namespace pwx
