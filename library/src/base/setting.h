// Settings: each is an object, declared beside its use, that has a name, a type, a default and a line of
// help. The environment variables (PEERWAY_NAME), the configuration file (~/.config/peerway/config.json, one
// JSON object), `peerway config` and the documentation page all come from these declarations, in a product
// beside the library, too. No setting is needed for good performance.
//
//   namespace pw::settings {
//   const SecondsSetting timeout{"timeout", "60", "Limit of each exchange ..."};
//   }
//   deadline_after(settings::timeout.nanoseconds());
//
// A setting that several files read is `extern` in the header of the one that declares it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// A setting. It lives as long as the process, so the texts must be literals.
class Setting {
 public:
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  [[nodiscard]] std::string_view name() const { return name_; }  ///< lower case
  [[nodiscard]] std::string type() const;  ///< "text", "path", "count", "seconds", "choice:a|b|c"
  /// The default as text. If it is empty, the value is derived, and help() says from what.
  [[nodiscard]] std::string_view default_text() const { return default_; }
  [[nodiscard]] std::string_view help() const { return help_; }

  /// The value in force: environment, then file, then default. Throws Error(PW_BAD_CONFIG) for a value that
  /// does not fit the type, naming the value, where it came from and what is allowed.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string origin() const;  ///< "PEERWAY_LOG", "the default of 'log'", ...

 protected:
  Setting(std::string_view name, std::string_view type, std::string_view alternatives,
          std::string_view default_text, std::string_view help);
  ~Setting() = default;
  /// The value as parse_setting() returns it; 0 if the text is empty, which means "derived".
  [[nodiscard]] uint64_t number() const;
  [[nodiscard]] std::string_view alternative(size_t number) const;

 private:
  std::string_view name_, type_, alternatives_, default_, help_;
};

class TextSetting : public Setting {
 public:
  TextSetting(std::string_view name, std::string_view default_text, std::string_view help)
      : Setting(name, "text", {}, default_text, help) {}
};

/// A file or a folder: an absolute path, or empty.
class PathSetting : public Setting {
 public:
  PathSetting(std::string_view name, std::string_view default_text, std::string_view help)
      : Setting(name, "path", {}, default_text, help) {}
};

/// A whole number, 0 or more.
class CountSetting : public Setting {
 public:
  CountSetting(std::string_view name, std::string_view default_text, std::string_view help)
      : Setting(name, "count", {}, default_text, help) {}
  /// The value; nothing if it is to be derived.
  [[nodiscard]] std::optional<uint64_t> count() const {
    return text().empty() ? std::nullopt : std::optional(number());
  }
};

/// A time of more than 0 and at most a million seconds.
class SecondsSetting : public Setting {
 public:
  SecondsSetting(std::string_view name, std::string_view default_text, std::string_view help)
      : Setting(name, "seconds", {}, default_text, help) {}
  [[nodiscard]] uint64_t nanoseconds() const { return number(); }
};

/// One of several names. `alternatives` lists them in the order of the values of `Enum`: "off|on" for bool.
template <typename Enum>
class ChoiceSetting : public Setting {
 public:
  ChoiceSetting(std::string_view name, std::string_view alternatives, std::string_view default_text,
                std::string_view help)
      : Setting(name, "choice", alternatives, default_text, help) {}
  [[nodiscard]] Enum value() const { return static_cast<Enum>(number()); }
  [[nodiscard]] std::string_view name_of(Enum value) const { return alternative(static_cast<size_t>(value)); }
};

/// All settings of the library and of the products that this process has loaded, by name.
std::vector<const Setting*> all_settings();

/// Throws Error(PW_INTERNAL) if there is no setting of that name.
const Setting& setting_named(std::string_view name);

/// Checks every value now in force, so that a mistake is reported at the start and not in the middle. Throws
/// as text() does, and for PEERWAY_ variables that are no settings; products that are not loaded check
/// theirs themselves.
void check_settings();

/// ~/.config/peerway and ~/.cache/peerway, by the XDG rules.
std::string config_home();
std::string cache_home();

}  // namespace pw
