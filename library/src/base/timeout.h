// How long ranks wait for one another while they set something up.
#pragma once

#include "base/setting.h"

namespace pw::settings {

extern const SecondsSetting timeout;

}  // namespace pw::settings
