//! Finds the process that holds a UDP port, for an error message. IO.

use std::fs;

/// The process that holds a UDP port, as far as `/proc` shows it to us.
pub fn of(port: u16) -> Option<String> {
    let sockets = sockets_of(port);
    for process in fs::read_dir("/proc").ok()?.flatten() {
        // `/proc` also has links such as `self`.
        let pid = process.file_name().to_string_lossy().parse::<u32>();
        let (Ok(pid), Ok(files)) = (pid, fs::read_dir(process.path().join("fd"))) else {
            continue;
        };
        let holds = files.flatten().any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|target| sockets.iter().any(|socket| target.as_os_str() == &**socket))
        });
        if holds {
            let name = fs::read_to_string(process.path().join("comm")).ok()?;
            return Some(format!("'{}' (process {pid})", name.trim()));
        }
    }
    None
}

/// The sockets bound to a port, as the links in `/proc/PID/fd` name them.
fn sockets_of(port: u16) -> Vec<String> {
    ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| {
            let lines = table.lines().skip(1);
            lines
                .filter_map(|line| socket_on(line, port))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The socket of a line of the table, if it is bound to the port.
fn socket_on(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let local = fields.get(1)?.rsplit(':').next()?;
    let inode = fields.get(9)?;
    (u16::from_str_radix(local, 16) == Ok(port)).then(|| format!("socket:[{inode}]"))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_holder_of_a_port_is_named_with_its_process_id() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let holder = of(port).unwrap();
        let pid = std::process::id();
        assert!(holder.ends_with(&format!("(process {pid})")), "{holder}");
    }
}
