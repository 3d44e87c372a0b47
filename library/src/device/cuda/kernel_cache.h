// Compiled device code kept on disk, so that a GPU's kernels are compiled once and not once a process.
#pragma once

#include <functional>
#include <string>

namespace pw::cuda {

/// The image kept in `folder` for `key`, or what `compile` makes, which is then kept there. `key` is all that
/// the image depends on, in full: it is stored with the image and compared, so that neither a damaged file
/// nor a hash that two keys share gives a wrong image. A folder that cannot be written costs one warning,
/// never the image.
std::string cached_image(const std::string& folder, const std::string& key,
                         const std::function<std::string()>& compile);

/// The folder of the setting `cache` for kernels.
std::string kernel_folder();

/// The file that holds the image of `key`.
std::string cache_file(const std::string& folder, const std::string& key);

}  // namespace pw::cuda
