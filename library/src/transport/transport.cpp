#include "transport/transport.h"

namespace pw::settings {

const ChoiceSetting<bool> strict{"strict", "off|on", "off",
                                 "on: a faster path that exists but cannot be used is an error."};

}  // namespace pw::settings
