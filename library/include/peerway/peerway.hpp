// Peerway for C++20: the C interface of peerway.h as objects that own and free what they stand for. Header
// only; this file includes all of it.
//
//   auto team   = peerway::Team::from_launcher();
//   auto ctx    = peerway::Context(team);
//   auto region = ctx.register_memory(ptr, bytes);
//   auto keys   = team.all_gather(region.key());
//   auto remote = ctx.import(keys[right]);
//   peerway::check(ctx.put(remote.span(0, n), region.span(n, n)));
//
// Control paths (everything that makes an object, and the exchange) throw peerway::Error; data paths (put,
// get, notify, wait, flush) return a [[nodiscard]] peerway::Status. Objects may end in any order: an object
// that outlives its context keeps its memory, and its calls that would communicate return Status::closed.
// Sizes, offsets and strides are in bytes.
#ifndef PEERWAY_PEERWAY_HPP
#define PEERWAY_PEERWAY_HPP

#if __cplusplus < 202002L
#error "peerway.hpp needs C++20: compile with -std=c++20"
#else
#include "peerway/collective.hpp"  // IWYU pragma: export
#include "peerway/context.hpp"     // IWYU pragma: export
#include "peerway/halo.hpp"        // IWYU pragma: export
#include "peerway/handles.h"       // IWYU pragma: export
#include "peerway/memory.hpp"      // IWYU pragma: export
#include "peerway/peerway.h"       // IWYU pragma: export
#include "peerway/plan.hpp"        // IWYU pragma: export
#include "peerway/request.hpp"     // IWYU pragma: export
#include "peerway/status.hpp"      // IWYU pragma: export
#include "peerway/team.hpp"        // IWYU pragma: export
#endif

#endif
