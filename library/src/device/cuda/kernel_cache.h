// Keeps compiled device code on disk, so that a GPU's kernels are compiled once and not by each process.
#pragma once

#include <functional>
#include <string>

namespace pw::cuda {

/// Returns the image stored in `folder` for `key`; otherwise the image that `compile` makes, which is then
/// stored. `key` is everything that the image depends on, in full: it is stored with the image and compared,
/// so that neither a damaged file nor a hash collision returns a wrong image. If another process or thread
/// compiles the same, it is waited for. If the folder cannot be written, one warning is logged and the image
/// is still returned.
std::string cached_image(const std::string& folder, const std::string& key,
                         const std::function<std::string()>& compile);

/// Returns the folder for kernels, by the setting `cache`.
std::string kernel_folder();

/// Returns the path of the file for `key`.
std::string cache_file(const std::string& folder, const std::string& key);

}  // namespace pw::cuda
