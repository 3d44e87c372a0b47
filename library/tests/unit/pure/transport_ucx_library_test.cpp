// Finding UCX: where it is looked for, and what is said of files that are none.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "transport/ucx/library.h"

namespace pw::ucx {
namespace {

class Folder {
 public:
  Folder() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~Folder() { EXPECT_EQ(std::system(("rm -r " + std::string(path_)).c_str()), 0); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + ("/" + name)) << content;
    return path_ + ("/" + name);
  }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/peerway-ucx-XXXXXX";
};

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(UcxCandidates, ASettingIsTheOnlyOne) {
  EXPECT_EQ(candidates("/opt/ucx/lib/libucp.so.0"), std::vector<std::string>{"/opt/ucx/lib/libucp.so.0"});
}

TEST(UcxCandidates, TheRootComesBeforeTheSystemAndTheSystemBeforeWheels) {
  const Folder root, environment;
  const std::string wheel = environment.path() + "/lib/python3.11/site-packages/libucx/lib";
  ASSERT_EQ(std::system(("mkdir -p " + root.path() + "/lib " + wheel).c_str()), 0);
  std::ofstream(wheel + "/libucp.so.0") << "";
  const Variable of_root("UCX_ROOT", root.path()), of_environment("VIRTUAL_ENV", environment.path());
  const auto files = candidates("");
  ASSERT_GE(files.size(), 3u);
  EXPECT_EQ(files[0], root.path() + "/lib/libucp.so.0") << "also when it is missing, so that this is told";
  EXPECT_EQ(files[1], "libucp.so.0");
  EXPECT_NE(std::find(files.begin() + 2, files.end(), wheel + "/libucp.so.0"), files.end());
}

TEST(UcxLoad, EveryFileIsNamedWithWhatIsWrong) {
  const Folder folder;
  const std::string garbage = folder.file("libucp.so.0", "this is no library");
  const std::string absent = folder.path() + "/absent/libucp.so.0";
  std::string why;
  EXPECT_EQ(load({garbage, absent}, why), nullptr);
  EXPECT_NE(why.find(garbage), std::string::npos) << why;
  EXPECT_NE(why.find(absent + " (there is no such file"), std::string::npos) << why;
}

TEST(UcxLoad, AnotherLibraryIsRefusedForWhatItLacks) {
  std::string why;
  EXPECT_EQ(load({"libm.so.6"}, why), nullptr);
  EXPECT_NE(why.find("it has no uc"), std::string::npos) << why;
}

}  // namespace
}  // namespace pw::ucx
