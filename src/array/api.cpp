// The C functions of distributed arrays. A halo is a plan of sends and receives.
#include <memory>
#include <optional>
#include <vector>

#include "array/agreement.h"
#include "array/distribution.h"
#include "array/grid.h"
#include "array/halo.h"
#include "base/format.h"
#include "base/status.h"
#include "context/context.h"
#include "context/handle.h"
#include "plan/handle.h"
#include "plan/plan.h"

namespace {

using pw::Error;
using pw::format;
using pw::given;
using pw::array::kMakeHalo;

/// A halo as this rank was asked for it.
struct Asked {
  const pw_grid* grid;
  std::span<const pw_array> arrays;
  int corners;
};

// Whether this rank's part fits into the region. A rank that owns nothing needs none.
void check_region(const pw_array& array, uint64_t span, size_t number) {
  if (span == 0) return;
  if (array.region == nullptr)
    throw Error(PW_INVALID_ARGUMENT,
                format("peerway: array {} has no region, but this rank's part with its shadow needs {} bytes",
                       number, span));
  const uint64_t bytes = array.region->region->bytes();
  if (array.offset > bytes || span > bytes - array.offset)
    throw Error(PW_OUT_OF_RANGE,
                format("peerway: this rank's part of array {} with its shadow needs {} bytes from "
                       "offset {} on, but the region has {} bytes",
                       number, span, array.offset, bytes));
}

/// The device of the arrays that this rank holds a part of; null where there are none.
pw::Device* device_of(std::span<const pw_array> arrays) {
  pw::Device* device = nullptr;
  for (const pw_array& array : arrays) {
    if (array.region == nullptr) continue;
    pw::Device& here = array.region->region->device();
    if (device != nullptr && device != &here)
      throw Error(
          PW_INVALID_ARGUMENT,
          format("peerway: array {} of a halo is memory of {}, those before it of {}; all must be of one "
                 "device, or make a halo for each",
                 &array - arrays.data(), pw::to_string(here.id()), pw::to_string(device->id())));
    device = &here;
  }
  return device;
}

/// All that one rank can find wrong by itself.
pw::array::Opening opening_of(const Asked& asked, pw::Team& team) {
  if (asked.grid == nullptr || (asked.arrays.data() == nullptr && !asked.arrays.empty()))
    throw Error(PW_INVALID_ARGUMENT, "peerway: pw_halo_create was given a null pointer");
  if (asked.arrays.empty())
    throw Error(PW_INVALID_ARGUMENT, "peerway: a halo of 0 arrays; give at least one");
  if (asked.corners != 0 && asked.corners != 1)
    throw Error(PW_INVALID_ARGUMENT, format("peerway: corners is {}; it is 0 or 1", asked.corners));
  const pw::array::Grid grid(*asked.grid, team.size());
  const auto at = grid.coordinates(team.rank());
  for (size_t a = 0; a < asked.arrays.size(); ++a) {
    const pw_array& array = asked.arrays[a];
    const pw::array::Distribution distribution(grid, array, static_cast<uint32_t>(a));
    const auto strides = distribution.strides(pw::array::given_strides(array), at);
    check_region(array, distribution.span_bytes(strides, at), a);
  }
  const pw::Device* device = device_of(asked.arrays);
  pw::array::Opening opening;
  opening.device_kind = device == nullptr ? -1 : device->id().kind;
  opening.arrays = static_cast<uint32_t>(asked.arrays.size());
  opening.corners = static_cast<uint32_t>(asked.corners);
  opening.grid = *asked.grid;
  return opening;
}

/// What all ranks have agreed on, as it is for this one.
struct Agreed {
  pw::array::Halo halo;
  int32_t device_kind;  ///< of the arrays of the first rank that holds a part
};

/// Collective. Throws Error at every rank when they cannot agree.
Agreed agree(const Asked& asked, pw::Team& team) {
  pw::Objection objection;
  pw::array::Opening mine;
  pw::attempt(objection, [&] { mine = opening_of(asked, team); });
  const pw::array::Told told = pw::array::exchange(team, objection, mine, asked.arrays);
  int32_t kind = PW_HOST;
  for (const auto& opening : told.openings)
    if (opening.device_kind >= 0) {
      kind = opening.device_kind;
      break;
    }
  const pw::array::Grid grid(*asked.grid, team.size());
  std::vector<pw::array::Distribution> arrays;
  for (size_t a = 0; a < asked.arrays.size(); ++a)
    arrays.emplace_back(grid, asked.arrays[a], static_cast<uint32_t>(a));
  const auto strides_of = [&](int rank, uint32_t a) {
    const pw_array& array = told.arrays[static_cast<size_t>(rank) * arrays.size() + a];
    return arrays[a].strides(pw::array::given_strides(array), grid.coordinates(rank));
  };
  return {pw::array::halo_of(arrays, strides_of, team.rank(), asked.corners != 0), kind};
}

/// The plan, not yet prepared.
std::unique_ptr<pw_plan> plan_of(const std::shared_ptr<pw::Context>& context, const Asked& asked,
                                 const Agreed& agreed) {
  pw::Device* device = device_of(asked.arrays);
  // A rank that owns nothing still starts the plan as the others do.
  if (device == nullptr)
    device = &context->device_named({static_cast<pw_device_kind>(agreed.device_kind), -1});
  auto made = std::make_unique<pw_plan>(context, *device);
  const auto region_of = [&](const pw::array::Face& face) { return asked.arrays[face.array].region->region; };
  const auto block_in_region = [&](const pw::array::Face& face) {
    pw_block block = face.block;
    block.offset += asked.arrays[face.array].offset;
    return block;
  };
  for (const auto& face : agreed.halo.sends)
    made->plan.send(face.rank, face.tag, region_of(face), block_in_region(face));
  for (const auto& face : agreed.halo.receives)
    made->plan.receive(face.rank, face.tag, region_of(face), block_in_region(face));
  return made;
}

}  // namespace

extern "C" {

pw_status pw_grid_block(uint64_t extent, uint32_t parts, uint32_t index, uint64_t* first, uint64_t* count) {
  return pw::guard(__func__, given(first, count), [&] {
    const pw::array::Part part = pw::array::block_of(extent, parts, index);
    *first = part.first;
    *count = part.count;
    return PW_OK;
  });
}

pw_status pw_halo_create(pw_context* context, const pw_grid* grid, const pw_array* arrays, uint32_t count,
                         int corners, pw_plan** plan) {
  return pw::guard(__func__, given(context, plan), [&] {
    pw::Team& team = context->context->team();
    const Asked asked{grid, {arrays, count}, corners};
    const Agreed agreed = agree(asked, team);
    std::unique_ptr<pw_plan> made;
    pw::Objection objection;
    pw::attempt(objection, [&] { made = plan_of(context->open(), asked, agreed); });
    pw::agree(team, objection, {}, kMakeHalo);
    made->plan.prepare(false);
    *plan = made.release();
    return PW_OK;
  });
}

}  // extern "C"
