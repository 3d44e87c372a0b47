// UCX's types of memory as kinds of devices: their names differ for AMD GPUs.
#include <gtest/gtest.h>

#include "peerway/peerway.h"
#include "transport/ucx/memory_kinds.h"

namespace pw::ucx {
namespace {

// In the order of ucs_memory_type_t of UCX 1.22.
constexpr const char* kNames[] = {"host", "cuda",    "cuda-managed", "rocm",       "rocm-managed",
                                  "rdma", "ze-host", "ze-device",    "ze-managed", "unknown"};
constexpr uint64_t kHost = 1 << 0, kCuda = 1 << 1, kCudaManaged = 1 << 2, kRocm = 1 << 3;

TEST(UcxMemoryKinds, HipsMemoryIsCalledRocm) {
  EXPECT_EQ(kinds_among(kHost | kRocm, kNames), 1u << PW_HOST | 1u << PW_HIP);
  EXPECT_EQ(memory_name("hip"), "rocm");
}

TEST(UcxMemoryKinds, OtherKindsHaveTheSameName) {
  EXPECT_EQ(kinds_among(kHost | kCuda, kNames), 1u << PW_HOST | 1u << PW_CUDA);
  EXPECT_EQ(memory_name("cuda"), "cuda");
}

TEST(UcxMemoryKinds, ManagedMemoryIsNoKindOfItsOwn) {
  EXPECT_EQ(kinds_among(kHost | kCudaManaged, kNames), 1u << PW_HOST);
}

TEST(UcxMemoryKinds, AUcxWithoutNamesHasNone) { EXPECT_EQ(kinds_among(~uint64_t{0}, nullptr), 0u); }

}  // namespace
}  // namespace pw::ucx
