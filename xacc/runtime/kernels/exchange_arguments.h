// The parameters of a reduction of values on the GPUs of several ranks. Compiled by the host compiler and by
// NVRTC: plain types only.
#pragma once

#include "peerway/handles.h"

enum { pwx_most_peers = 7 };  // all GPUs of most hosts

// Another rank: where values for it go, and where its values come. Two slots each, used in turn.
struct pwx_peer {
  unsigned char *to, *from;
  int rank;
};

// The others, by their places in the set.
struct pwx_peers {
  pw_guard guard;
  unsigned long long* epochs;     // of each block: how often it has run
  unsigned long long slot_bytes;  // of one slot
  int place, count;               // of this rank; of the others
  struct pwx_peer of[pwx_most_peers];
};
