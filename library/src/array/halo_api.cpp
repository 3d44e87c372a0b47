// The C functions of distributed arrays. A halo is a plan of sends and receives.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "array/agreement.h"
#include "array/distribution.h"
#include "array/grid.h"
#include "array/halo.h"
#include "base/format.h"
#include "base/status.h"
#include "base/timeout.h"
#include "context/context.h"
#include "context/handle.h"
#include "memory/described.h"
#include "plan/handle.h"
#include "plan/plan.h"
#include "team/agreement.h"
#include "trace/call.h"

namespace {

using pw::Error;
using pw::format;
using pw::given;

/// The arguments of pw_halo_create.
struct HaloRequest {
  const pw_grid* grid;
  const pw_array* given;
  uint32_t count;
  pw_halo_parts parts;
  std::optional<pw_grid> grid_room{};
  std::vector<pw_array> arrays{};  ///< converted to this library's version of the struct

  /// Checks and converts the arguments. Throws Error.
  void take() {
    if (grid == nullptr || (given == nullptr && count > 0))
      throw Error(PW_INVALID_ARGUMENT, "pw_halo_create was given a null pointer");
    grid = pw::sized(grid, grid_room, "pw_grid");
    const auto* bytes = reinterpret_cast<const std::byte*>(given);
    for (uint32_t a = 0; a < count; ++a) {
      std::optional<pw_array> room;
      const auto* array = reinterpret_cast<const pw_array*>(bytes + a * given->size);
      arrays.push_back(*pw::sized(array, room, "pw_array"));
    }
  }
};

// Checks that this rank's part fits into the region. A rank that owns nothing needs no region.
void check_region(const pw_array& array, uint64_t span, size_t number) {
  if (span == 0) return;
  if (array.region == nullptr)
    throw Error(
        PW_INVALID_ARGUMENT,
        format("array {} has no region, but this rank's part with its shadow needs {} bytes", number, span));
  pw::require_writable(pw::described(*array.region->region));
  const uint64_t bytes = array.region->region->bytes();
  if (array.offset > bytes || span > bytes - array.offset)
    throw Error(PW_OUT_OF_RANGE, format("this rank's part of array {} with its shadow needs {} bytes from "
                                        "offset {} on, but the region has {} bytes",
                                        number, span, array.offset, bytes));
}

/// Returns the device of the arrays of which this rank holds a part; null if there are none.
pw::Device* device_of(std::span<const pw_array> arrays) {
  pw::Device* device = nullptr;
  for (const pw_array& array : arrays) {
    if (array.region == nullptr) continue;
    pw::Device& here = array.region->region->device();
    if (device != nullptr && device != &here)
      throw Error(PW_INVALID_ARGUMENT,
                  format("array {} of a halo is memory of {}, those before it of {}; all must be of one "
                         "device, or make a halo for each",
                         &array - arrays.data(), pw::to_string(here.id()), pw::to_string(device->id())));
    device = &here;
  }
  return device;
}

/// Does every check that needs no other rank.
pw::array::HaloOpening opening_of(HaloRequest& request, pw::Team& team) {
  request.take();
  if (request.arrays.empty()) throw Error(PW_INVALID_ARGUMENT, "a halo of 0 arrays; give at least one");
  if (request.parts != PW_HALO_FACES && request.parts != PW_HALO_CORNERS)
    throw Error(PW_INVALID_ARGUMENT, format("{} is not the parts of a halo; there are PW_HALO_FACES ({}) and "
                                            "PW_HALO_CORNERS ({})",
                                            static_cast<int>(request.parts), static_cast<int>(PW_HALO_FACES),
                                            static_cast<int>(PW_HALO_CORNERS)));
  const pw::array::Grid grid(*request.grid, team.size());
  const auto at = grid.coordinates(team.rank());
  for (size_t a = 0; a < request.arrays.size(); ++a) {
    const pw_array& array = request.arrays[a];
    const pw::array::Distribution distribution(grid, array, static_cast<uint32_t>(a));
    const auto strides = distribution.strides(pw::array::given_strides(array), at);
    check_region(array, distribution.extent_bytes(strides, at), a);
  }
  const pw::Device* device = device_of(request.arrays);
  pw::array::HaloOpening opening;
  opening.device_kind = device == nullptr ? -1 : device->id().kind;
  opening.arrays = static_cast<uint32_t>(request.arrays.size());
  opening.corners = request.parts == PW_HALO_CORNERS ? 1 : 0;
  opening.grid = *request.grid;
  return opening;
}

/// The halo on which the ranks have agreed, for this rank.
struct Agreed {
  pw::array::Halo halo;
  int32_t device_kind;  ///< of this rank's arrays, or of rank 0's if this rank holds no part
};

/// Sends this rank's request to its neighbours. Throws Error if they request something else.
Agreed agree(HaloRequest& request, pw::Team& team, pw::Exchange& exchange) {
  const pw::array::HaloOpening opening = opening_of(request, team);
  const pw::array::RequestedHalo mine{opening, request.arrays};
  const pw::array::Grid grid(*request.grid, team.size());
  std::vector<pw::array::Distribution> arrays;
  for (size_t a = 0; a < request.arrays.size(); ++a)
    arrays.emplace_back(grid, request.arrays[a], static_cast<uint32_t>(a));
  const bool corners = request.parts == PW_HALO_CORNERS;
  pw::PeerMessages messages;
  for (const int rank : pw::array::listeners(arrays, team.rank(), corners))
    messages.emplace_back(rank, pack(mine));
  std::map<int, pw::array::RequestedHalo> halos{{team.rank(), mine}};
  for (const auto& [rank, text] : exchange.exchange(messages, pw::settings::timeout.nanoseconds()))
    check_same(team.rank(), mine, rank, halos[rank] = pw::array::parse_requested_halo(text));
  const auto strides_of = [&](int rank, uint32_t a) {
    return arrays[a].strides(pw::array::given_strides(halos.at(rank).arrays.at(a)), grid.coordinates(rank));
  };
  int32_t kind = mine.opening.device_kind;
  for (const auto& [rank, other] : halos)
    if (kind < 0) kind = other.opening.device_kind;
  return {pw::array::halo_of(arrays, strides_of, team.rank(), corners),
          kind < 0 ? static_cast<int32_t>(PW_HOST) : kind};
}

/// Returns the plan's builder; the plan is not prepared yet.
std::unique_ptr<pw_plan_builder> builder_of(const std::shared_ptr<pw::Context>& context,
                                            const HaloRequest& request, const Agreed& agreed) {
  pw::Device* device = device_of(request.arrays);
  // A rank that owns nothing still starts the plan like the others.
  if (device == nullptr)
    device = &context->device_named({static_cast<pw_device_kind>(agreed.device_kind), -1});
  auto builder = std::make_unique<pw_plan_builder>(context, *device);
  const auto region_of = [&](const pw::array::Face& face) {
    return request.arrays[face.array].region->region;
  };
  const auto block_in_region = [&](const pw::array::Face& face) {
    pw_block block = face.block;
    block.offset += request.arrays[face.array].offset;
    return block;
  };
  for (const auto& face : agreed.halo.sends)
    builder->plan->operations().send(face.rank, face.tag, region_of(face), block_in_region(face));
  for (const auto& face : agreed.halo.receives)
    builder->plan->operations().receive(face.rank, face.tag, region_of(face), block_in_region(face));
  return builder;
}

}  // namespace

extern "C" {

pw_status pw_grid_block(uint64_t extent, uint32_t parts, uint32_t index, uint64_t* first, uint64_t* count) {
  return pw::catch_errors(__func__, given(first, count), [&] {
    const pw::array::Interval part = pw::array::block_of(extent, parts, index);
    *first = part.first;
    *count = part.count;
    return PW_OK;
  });
}

pw_status pw_halo_create(pw_context* context, const pw_array* arrays, uint32_t count, const pw_grid* grid,
                         pw_halo_parts parts, pw_plan** plan) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, plan), [&] {
    pw::Team& team = context->context->team();
    HaloRequest request{grid, arrays, count, parts};
    std::unique_ptr<pw_plan_builder> builder;
    auto exchange = pw::run_exchange(team, pw::CallKind::halo, [&](pw::Exchange& with) {
      builder = builder_of(context->open(), request, agree(request, team, with));
      builder->plan->prepare_in(with);
    });
    builder->plan->keep_exchange(std::move(exchange));
    *plan = builder->prepared().release();
    return PW_OK;
  });
}

}  // extern "C"
