// The parameters of a reduction of values on the GPUs of several ranks. The host compiler and NVRTC compile
// this, so it has only plain types.
#pragma once

#include "peerway/handles.h"

enum { pwx_most_peers = 7 };  // enough for all GPUs of most hosts

// Another rank: where values are sent to it, and where its values arrive. There are two slots in each
// direction, used in turn.
struct pwx_peer {
  unsigned char *to, *from;
  int rank;
};

// The other ranks, by their places in the set.
struct pwx_peers {
  pw_guard guard;
  unsigned long long* epochs;     // of each block: how often it has run
  unsigned long long slot_bytes;  // of one slot
  int place, count;               // place of this rank; number of other ranks
  struct pwx_peer of[pwx_most_peers];
};
