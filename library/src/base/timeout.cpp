#include "base/timeout.h"

namespace pw::settings {

const SecondsSetting timeout{"timeout", "60",
                             "Limit of each exchange while a team, context, plan or halo is being set up."};

}  // namespace pw::settings
