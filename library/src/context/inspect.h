// Functions about routes for the Python module, beyond the C interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "context/resolver.h"

struct pw_context;
struct pw_remote;
struct pw_region;

namespace pw {

/// Returns every path of the build with its answer for this pair, in order of preference.
std::vector<NamedOffer> paths_for(pw_context* context, const pw_remote* remote, const pw_region* region);

/// Returns an owner of the memory of pw_region_allocate, which keeps the memory when the region and its
/// context have ended. Null if the caller owns the memory.
std::shared_ptr<void> memory_of(const pw_region* region);

/// Returns the decision for this pair with its explanation (JSON; route/explain.h).
std::string explain_for(pw_context* context, const pw_remote* remote, const pw_region* region, Op op,
                        route::ShapeClass shape);

/// Sets the chunk size of `staged` for transfers started after the call; `peerway tune` uses it.
void set_staging_chunk_bytes(pw_context* context, uint64_t bytes);

}  // namespace pw
