// Declares the settings of programs that `peerway cc` compiled.
#include "base/config.h"

namespace pwx {
namespace {

constexpr pw::ConfigEntry settings[] = {
    {"acc", "choice:auto|gpu|host", "auto",
     "Where loops of `peerway cc` with acc directives run. auto: on a GPU where there is one."},
    {"acc_first_device", "choice:0|1", "0",
     "The number of the first GPU in acc_set_device_num: 1 for programs written for the Omni compiler."},
};

const bool is_declared = (pw::declare_settings("acc", settings), true);

}  // namespace
}  // namespace pwx
