// Halos against an oracle: all ranks live in this process, faces are copied between their memories, and every
// byte is compared with what the global array says should be there. What no halo covers keeps its poison.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "array/halo.h"
#include "base/format.h"
#include "base/status.h"
#include "device/shape.h"
#include "rounds.h"

namespace pw::array {
namespace {

using Bytes = std::vector<unsigned char>;
using Index = std::array<int64_t, PW_MAX_ARRAY_DIMS>;
constexpr unsigned char kPoison = 0xEE;

struct Case {
  pw_grid grid{};
  std::vector<pw_array> arrays;
  bool corners = false;
  bool strided = false;  ///< each rank has an order of dimensions and gaps of its own
  uint64_t seed = 0;
};

/// The element at a global index: bytes that no other element of any array has.
void write_element(const pw_array& array, uint32_t number, const Index& at, unsigned char* to) {
  uint64_t value = number + 1;
  for (uint32_t d = 0; d < array.dims; ++d)
    value = value * 0x9E3779B97F4A7C15ULL + static_cast<uint64_t>(at[d]) + 1;
  std::mt19937_64 bytes(value);
  for (uint64_t i = 0; i < array.element_bytes; ++i) to[i] = static_cast<unsigned char>(bytes() % 0xEE);
}

/// One array in one rank's memory.
struct Memory {
  ArrayStrides strides{};
  Bytes bytes, expected;
};

class World {
 public:
  explicit World(const Case& c) : case_(c), random_(c.seed), grid_(c.grid, places(c.grid)) {
    for (uint32_t a = 0; a < c.arrays.size(); ++a) arrays_.emplace_back(grid_, c.arrays[a], a);
    memory_.resize(static_cast<size_t>(grid_.size()));
    for (int rank = 0; rank < grid_.size(); ++rank)
      for (uint32_t a = 0; a < arrays_.size(); ++a) memory_[rank].push_back(make(rank, a));
  }

  static int places(const pw_grid& grid) {
    int product = 1;
    for (uint32_t d = 0; d < grid.dims; ++d) product *= static_cast<int>(grid.extent[d]);
    return product;
  }

  void refresh() {
    const StridesOf strides_of = [&](int rank, uint32_t a) { return memory_[rank][a].strides; };
    std::map<std::tuple<int, int, int>, Face> sends;  // from, to, tag
    std::vector<Halo> halos;
    for (int rank = 0; rank < grid_.size(); ++rank)
      halos.push_back(halo_of(arrays_, strides_of, rank, case_.corners));
    for (int rank = 0; rank < grid_.size(); ++rank)
      for (const Face& face : halos[rank].sends)
        ASSERT_TRUE(sends.insert({{rank, face.rank, face.tag}, face}).second)
            << "tag " << face.tag << " twice";
    for (int rank = 0; rank < grid_.size(); ++rank)
      for (const Face& face : halos[rank].receives) {
        const auto send = sends.extract({face.rank, rank, face.tag});
        ASSERT_FALSE(send.empty()) << "rank " << rank << " waits for rank " << face.rank << ", tag "
                                   << face.tag;
        move(send.mapped(), face.rank, face, rank);
        ++moved_;
      }
    EXPECT_TRUE(sends.empty()) << sends.size() << " sends that nobody receives";
  }

  void compare() const {
    for (int rank = 0; rank < grid_.size(); ++rank)
      for (size_t a = 0; a < arrays_.size(); ++a) {
        const Memory& memory = memory_[rank][a];
        const auto [here, there] =
            std::mismatch(memory.bytes.begin(), memory.bytes.end(), memory.expected.begin());
        ASSERT_EQ(here, memory.bytes.end())
            << "array " << a << " on rank " << rank << ": byte " << here - memory.bytes.begin() << " is "
            << int{*here} << ", not " << int{*there};
      }
  }

  [[nodiscard]] size_t moved() const { return moved_; }

 private:
  ArrayStrides random_strides(const Distribution& array, const Coordinates& at) {
    std::vector<uint32_t> order(array.dims());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    const Counts held = array.held(at);
    ArrayStrides strides{};
    uint64_t inner = array.element_bytes() * (1 + random_() % 2);
    for (const uint32_t d : order) {
      strides[d] = static_cast<int64_t>(inner);
      inner = inner * std::max<uint64_t>(held[d], 1) + (random_() % 3 == 0 ? 5 : 0);
    }
    return strides;
  }

  Memory make(int rank, uint32_t number) {
    const Distribution& array = arrays_[number];
    const Coordinates at = grid_.coordinates(rank);
    Memory memory;
    memory.strides = array.strides(case_.strided ? random_strides(array, at) : ArrayStrides{}, at);
    memory.bytes.assign(array.extent_bytes(memory.strides, at), kPoison);
    memory.expected = memory.bytes;
    const Counts held = array.held(at);
    if (array.empty(at)) return memory;
    Index local{};
    do {
      uint64_t offset = 0;
      for (uint32_t d = 0; d < array.dims(); ++d)
        offset += static_cast<uint64_t>(local[d]) * static_cast<uint64_t>(memory.strides[d]);
      place(number, at, local, &memory.bytes[offset], &memory.expected[offset]);
    } while (next(local, held, array.dims()));
    return memory;
  }

  static bool next(Index& local, const Counts& held, uint32_t dims) {
    for (uint32_t d = dims; d-- > 0;) {
      if (++local[d] < static_cast<int64_t>(held[d])) return true;
      local[d] = 0;
    }
    return false;
  }

  // The oracle: from the rules in words, by the global index of each element, with nothing of the code
  // tested.
  void place(uint32_t number, const Coordinates& at, const Index& local, unsigned char* now,
             unsigned char* later) const {
    const pw_array& array = case_.arrays[number];
    Index global{};
    int outside = 0;
    bool wanted = true;
    for (uint32_t d = 0; d < array.dims; ++d) {
      const pw_array_dim& dim = array.dim[d];
      const int64_t parts = dim.grid_dim < 0 ? 1 : case_.grid.extent[dim.grid_dim];
      const int64_t extent = static_cast<int64_t>(dim.extent);
      const int64_t block = (extent + parts - 1) / parts;
      const int64_t begin = dim.grid_dim < 0 ? 0 : at[static_cast<size_t>(dim.grid_dim)] * block;
      const int64_t end = std::min(begin + block, extent);
      int64_t g = begin + local[d] - static_cast<int64_t>(dim.shadow[0]);
      if (g < begin || g >= end) ++outside;
      if (g < begin - static_cast<int64_t>(dim.width[0])) wanted = false;
      if (g >= end + static_cast<int64_t>(dim.width[1])) wanted = false;
      if ((g < 0 || g >= extent) && dim.periodic == 0) wanted = false;
      global[d] = (g % extent + extent) % extent;
    }
    if (outside == 0) write_element(array, number, global, now);
    if (outside == 0 || (wanted && (outside == 1 || case_.corners)))
      write_element(array, number, global, later);
  }

  void move(const Face& from, int from_rank, const Face& to, int to_rank) {
    Bytes& source = memory_[from_rank][from.array].bytes;
    Bytes& target = memory_[to_rank][to.array].bytes;
    const Layout layout = join(to.block, target.size(), "target", from.block, source.size(), "source");
    ASSERT_EQ(to.block.dims, from.block.dims);
    ASSERT_TRUE(std::equal(to.block.count, to.block.count + to.block.dims, from.block.count));
    Chunk chunk;
    for (ChunkCursor cursor(layout, layout.shape.block_bytes); cursor.next(chunk);)  // block by block
      std::memcpy(&target[to.block.offset + chunk.to_offset], &source[from.block.offset + chunk.from_offset],
                  chunk.layout.shape.bytes());
  }

  const Case& case_;
  std::mt19937_64 random_;
  Grid grid_;
  std::vector<Distribution> arrays_;
  std::vector<std::vector<Memory>> memory_;
  size_t moved_ = 0;
};

std::string text(const Case& c) {
  std::string all = format("seed {} corners {} strided {} grid", c.seed, c.corners, c.strided);
  for (uint32_t d = 0; d < c.grid.dims; ++d) all += format(" {}", c.grid.extent[d]);
  for (const pw_array& array : c.arrays) {
    all += format("\n  {} bytes:", array.element_bytes);
    for (uint32_t d = 0; d < array.dims; ++d) {
      const pw_array_dim& dim = array.dim[d];
      all +=
          format(" [{} on {}{} shadow {}:{} width {}:{}]", dim.extent, dim.grid_dim,
                 dim.periodic ? " periodic" : "", dim.shadow[0], dim.shadow[1], dim.width[0], dim.width[1]);
    }
  }
  return all;
}

size_t expect_right(const Case& c) {
  SCOPED_TRACE(text(c));
  World world(c);
  world.refresh();
  world.compare();
  return world.moved();
}

pw_array array_of(uint64_t element_bytes, const std::vector<pw_array_dim>& dims) {
  pw_array array{};
  array.element_bytes = element_bytes;
  array.dims = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), array.dim);
  return array;
}

struct Named {
  const char* name;
  Case halo_case;
  size_t transfers;
};

class Halos : public ::testing::TestWithParam<Named> {};

TEST_P(Halos, HoldWhatTheGlobalArrayHolds) {
  EXPECT_EQ(expect_right(GetParam().halo_case), GetParam().transfers);
}

const pw_array_dim kRows{8, 0, 0, {1, 1}, {1, 1}, 0};
const pw_array_dim kPeriodicRows{8, 0, 1, {1, 1}, {1, 1}, 0};
const pw_array_dim kPeriodicColumns{6, 1, 1, {1, 1}, {1, 1}, 0};
const pw_array_dim kWhole{3, -1, 0, {0, 0}, {0, 0}, 0};

INSTANTIATE_TEST_SUITE_P(
    Table, Halos,
    ::testing::Values(
        Named{"one_process_alone", {{sizeof(pw_grid), 1, {1}}, {array_of(8, {kRows})}}, 0},
        Named{"one_process_periodic", {{sizeof(pw_grid), 1, {1}}, {array_of(8, {kPeriodicRows})}}, 2},
        Named{"two_of_two", {{sizeof(pw_grid), 1, {2}}, {array_of(8, {kRows})}}, 2},
        Named{"two_of_two_periodic", {{sizeof(pw_grid), 1, {2}}, {array_of(8, {kPeriodicRows})}}, 4},
        Named{"uneven", {{sizeof(pw_grid), 1, {3}}, {array_of(8, {{7, 0, 1, {1, 1}, {1, 1}, 0}})}}, 6},
        Named{"empty_part", {{sizeof(pw_grid), 1, {4}}, {array_of(8, {{5, 0, 1, {1, 1}, {1, 1}, 0}})}}, 6},
        Named{"outer_layers_untouched",
              {{sizeof(pw_grid), 1, {2}}, {array_of(8, {{8, 0, 1, {3, 3}, {1, 2}, 0}})}},
              4},
        Named{"receive_only", {{sizeof(pw_grid), 1, {2}}, {array_of(8, {{8, 0, 0, {0, 1}, {0, 1}, 0}})}}, 1},
        Named{"only_below", {{sizeof(pw_grid), 1, {2}}, {array_of(8, {{8, 0, 0, {1, 1}, {1, 0}, 0}})}}, 1},
        Named{"faces", {{sizeof(pw_grid), 2, {2, 2}}, {array_of(8, {kPeriodicRows, kPeriodicColumns})}}, 16},
        Named{"corners",
              {{sizeof(pw_grid), 2, {2, 2}}, {array_of(8, {kPeriodicRows, kPeriodicColumns})}, true},
              32},
        Named{"corners_at_a_border",
              {{sizeof(pw_grid), 2, {2, 2}}, {array_of(8, {kRows, kPeriodicColumns})}, true},
              20},
        Named{
            "not_distributed_but_periodic",
            {{sizeof(pw_grid), 1, {2}}, {array_of(8, {kPeriodicRows, {5, -1, 1, {2, 1}, {2, 1}, 0}})}, true},
            16},
        Named{"structs",
              {{sizeof(pw_grid), 2, {2, 2}}, {array_of(192, {kPeriodicRows, kPeriodicColumns, kWhole})}},
              16},
        Named{"odd_elements", {{sizeof(pw_grid), 1, {3}}, {array_of(13, {kWhole, kPeriodicRows})}}, 6},
        Named{"two_arrays",
              {{sizeof(pw_grid), 2, {2, 2}},
               {array_of(8, {kPeriodicRows, kPeriodicColumns}), array_of(12, {kPeriodicColumns, kWhole})}},
              24},
        Named{"replicated_over_the_rest_of_the_grid",
              {{sizeof(pw_grid), 2, {2, 3}}, {array_of(8, {kPeriodicRows})}},
              12},
        Named{"cut",
              {{sizeof(pw_grid), 1, {2}},
               {array_of(4, {{2, -1, 0, {0, 1}, {0, 0}, 0},
                             {2, -1, 0, {1, 0}, {0, 0}, 0},
                             {3, -1, 0, {0, 1}, {0, 0}, 0},
                             {4, 0, 0, {1, 1}, {1, 1}, 0},
                             {3, -1, 0, {0, 1}, {0, 0}, 0},
                             {3, -1, 0, {1, 0}, {0, 0}, 0},
                             {3, -1, 0, {0, 1}, {0, 0}, 0}})}},
              4}),
    [](const auto& each) { return each.param.name; });

TEST(HaloPieces, ContiguousFacesAreOneRun) {
  const Grid grid({sizeof(pw_grid), 1, {2}}, 2);
  const std::vector<Distribution> arrays{{grid, array_of(8, {kRows, kWhole, kWhole}), 0}};
  const Halo halo = halo_of(
      arrays, [&](int rank, uint32_t) { return arrays[0].strides({}, grid.coordinates(rank)); }, 0, false);
  ASSERT_EQ(halo.sends.size(), 1U);
  EXPECT_EQ(halo.sends[0].block.dims, 0U);
  EXPECT_EQ(halo.sends[0].block.block_bytes, 72U);
}

TEST(HaloPieces, AFaceOfTooManyPiecesIsRefused) {
  const Grid grid({sizeof(pw_grid), 1, {2}}, 2);
  const pw_array_dim gaps{300, -1, 0, {0, 1}, {0, 0}, 0};
  const std::vector<Distribution> arrays{{grid, array_of(1, {gaps, gaps, gaps, gaps, gaps, gaps, kRows}), 0}};
  try {
    halo_of(
        arrays, [&](int rank, uint32_t) { return arrays[0].strides({}, grid.coordinates(rank)); }, 0, false);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("300 times 300 pieces"), std::string::npos) << error.what();
  }
}

// ---- many arrays that nobody thought of

pw_array_dim random_dim(std::mt19937_64& random, uint32_t parts, int32_t grid_dim, uint64_t most) {
  pw_array_dim dim{};
  dim.extent = parts + random() % most;
  dim.grid_dim = grid_dim;
  dim.periodic = random() % 2;
  const uint64_t block = (dim.extent + parts - 1) / parts;
  const uint64_t last = dim.extent % block == 0 ? block : dim.extent % block;
  for (int side = 0; side < 2; ++side) {
    dim.shadow[side] = std::min(random() % 3, last);
    dim.width[side] = random() % (dim.shadow[side] + 1);
  }
  return dim;
}

pw_array random_array(std::mt19937_64& random, const pw_grid& grid) {
  const uint64_t sizes[] = {1, 2, 4, 8, 12, 16, 24, 192};
  pw_array array{};
  array.element_bytes = sizes[random() % std::size(sizes)];
  array.dims = 1 + static_cast<uint32_t>(random() % PW_MAX_ARRAY_DIMS);
  std::vector<int32_t> over(array.dims, -1);
  for (uint32_t d = 0; d < std::min(array.dims, grid.dims); ++d)
    if (random() % 4 != 0) over[d] = static_cast<int32_t>(d);
  std::shuffle(over.begin(), over.end(), random);
  const uint64_t most = array.dims < 3 ? 9 : array.dims < 5 ? 3 : 2;
  for (uint32_t d = 0; d < array.dims; ++d)
    array.dim[d] = random_dim(random, over[d] < 0 ? 1 : grid.extent[over[d]], over[d], most);
  if (array.dims > 4) array.element_bytes = std::min<uint64_t>(array.element_bytes, 12);
  return array;
}

TEST(RandomHalos, HoldWhatTheGlobalArrayHolds) {
  size_t moved = 0;
  for (uint64_t seed = 1; seed <= rounds(1000); ++seed) {
    std::mt19937_64 random(seed);
    Case c;
    c.seed = seed;
    c.grid.dims = 1 + static_cast<uint32_t>(random() % PW_MAX_DIMS);
    for (uint32_t d = 0; d < c.grid.dims; ++d)
      c.grid.extent[d] = 1 + static_cast<uint32_t>(random() % (c.grid.dims > 2 ? 2 : 4));
    const size_t count = 1 + random() % 2;
    while (c.arrays.size() < count) c.arrays.push_back(random_array(random, c.grid));
    c.corners = random() % 2 == 0;
    c.strided = random() % 2 == 0;
    moved += expect_right(c);
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, rounds(10000));
}

}  // namespace
}  // namespace pw::array
