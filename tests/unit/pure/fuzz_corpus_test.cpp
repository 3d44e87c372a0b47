// The parsers that are fuzzed (PRODUCT/tests/fuzz), over the stored inputs: those lead through every branch
// that a fuzzer has found. make test-long looks for more.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace pw {
namespace {

std::vector<std::filesystem::path> below(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  std::vector<std::filesystem::path> paths(begin(entries), end(entries));
  std::ranges::sort(paths);
  return paths;
}

TEST(FuzzCorpus, EveryStoredInputIsReadOrRefused) {
  std::vector<std::filesystem::path> folders;
  for (const char* product : {"library", "nic"})
    std::ranges::copy(below(std::filesystem::path(PEERWAY_SOURCES) / product / "tests/fuzz/corpus"),
                      std::back_inserter(folders));
  ASSERT_EQ(folders.size(), fuzz::fuzzers().size());
  for (const auto& folder : folders) {
    const fuzz::Fuzzer fuzzer = fuzz::fuzzers().at(folder.filename());
    for (const auto& path : below(folder)) {
      SCOPED_TRACE(path);
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
      fuzzer(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
  }
}

}  // namespace
}  // namespace pw
