#include "base/host_id.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "base/bytes.h"
#include "base/siphash.h"

namespace pw {

uint64_t host_id(std::string_view simulated) {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  struct stat space{};
  if (::stat("/proc/self/ns/pid", &space) == 0) text += ":" + std::to_string(space.st_ino);
  text += simulated;
  return first_word(siphash(Secret{}, view_of(text)));
}

uint64_t network_id() {
  struct stat space{};
  return ::stat("/proc/self/ns/net", &space) == 0 ? space.st_ino : 0;
}

void allow_attachment() noexcept {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // fails harmlessly if there is no Yama
}

}  // namespace pw
