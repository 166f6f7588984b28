# Homebrew: this repository is its own tap, and builds what is in it.
#   brew tap you/sessions-tui FOLDER-OR-URL && brew install --HEAD you/sessions-tui/sessions-tui
class SessionsTui < Formula
  desc "Keeps terminals alive, records every byte, brings you back to any moment"
  license any_of: ["MIT", "Apache-2.0"]
  head "file://#{__dir__}", using: :git, branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args
    man1.mkpath
    system bin/"sessions-tui", "man", man1
    generate_completions_from_executable(bin/"sessions-tui", "completions")
  end

  test do
    ENV["SESSIONS_ROOT"] = (testpath/"root").to_s
    begin
      system bin/"sessions-tui", "new", "-d", "-n", "greeting", "--", "echo", "hello"
      system bin/"sessions-tui", "wait", "greeting", "--for", "exit"
      assert_match "hello", shell_output("#{bin}/sessions-tui screen greeting")
    ensure
      system bin/"sessions-tui", "daemon", "stop", "--all", "--yes"
    end
  end
end
