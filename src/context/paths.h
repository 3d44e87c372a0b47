// The list of paths: the one place that knows which there are.
#pragma once

#include <memory>
#include <vector>

#include "path/mapped/maps.h"
#include "path/nic/nics.h"
#include "path/path.h"
#include "path/ucx/ucx.h"

namespace pw {

/// The paths of this build, in order of preference where nothing was measured.
std::vector<std::unique_ptr<Path>> make_paths(Surroundings surroundings, ucx::Ucx& ucx, const nic::Nics& nics,
                                              ProcessorMaps& maps);

}  // namespace pw
