import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.security.Security;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import pl.edu.agh.amber.common.proto.CommonProto.DriverHdr;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;

/** The connection of a client to its mediator: a UDP socket that finds its way again. */
final class Connection {
    private static final int MEDIATOR = 0;
    /** HOST, HOST:PORT or [IPV6]:PORT; an IPv6 address without brackets does not match. */
    private static final Pattern ADDRESS = Pattern.compile("(\\[.*\\]|[^:]*)(?::(\\d+))?");

    private final String host;
    private final int port;
    private final ExtensionRegistry registry;
    private DatagramSocket socket;

    /** To an address, or if it is null, to AMBER_MEDIATOR or this computer. The port may be null. */
    Connection(String address, String port, ExtensionRegistry registry) throws IOException {
        if (address == null) {
            address = System.getenv("AMBER_MEDIATOR");
        }
        if (address == null || address.isEmpty()) {
            address = "127.0.0.1";
        }
        Matcher parts = ADDRESS.matcher(address);
        String given = parts.matches() ? parts.group(2) : null;
        host = parts.matches() ? parts.group(1) : address;
        port = port == null ? given : port;
        this.port = port == null ? 26233 : Integer.parseInt(port);
        this.registry = registry;
        // The name of the mediator may get another address.
        Security.setProperty("networkaddress.cache.ttl", "1");
        connect();
    }

    /**
     * Connects, also again. A connected socket keeps the local address that it got first. When this
     * computer gets another one (Wi-Fi, DHCP, a VPN), or the name of the mediator does, only another
     * socket helps. It makes this program another client, so it must announce itself; one with
     * subscriptions also subscribes again.
     */
    private void connect() throws IOException {
        DatagramSocket opened = new DatagramSocket();
        try {
            // Looks the name up.
            opened.connect(new InetSocketAddress(InetAddress.getByName(host), port));
        } catch (IOException | RuntimeException error) {
            opened.close();
            throw error;
        }
        if (socket != null) {
            socket.close();
        }
        socket = opened;
        // After this, the mediator reports missing devices at once, so no request waits for a
        // timeout.
        sendOnce(MEDIATOR, DriverMsg.newBuilder().setType(MsgType.PING).build());
    }

    void connectAgain() {
        try {
            connect();
        } catch (IOException | RuntimeException error) {
            System.err.println("error: " + error.getMessage());
        }
    }

    private void sendOnce(int deviceType, DriverMsg message) throws IOException {
        byte[] header = DriverHdr.newBuilder().setDeviceType(deviceType).setDeviceID(0).build().toByteArray();
        byte[] body = message.toByteArray();
        ByteBuffer frame = ByteBuffer.allocate(4 + header.length + body.length);
        frame.putShort((short) header.length).put(header).putShort((short) body.length).put(body);
        socket.send(new DatagramPacket(frame.array(), frame.capacity()));
    }

    /** Whether a message could be sent. */
    boolean send(int deviceType, DriverMsg message) {
        try {
            sendOnce(deviceType, message);
            return true;
        } catch (IOException unsent) {
            connectAgain();
        }
        try {
            sendOnce(deviceType, message);
            return true;
        } catch (IOException error) {
            System.err.println("error: not sent: " + error.getMessage());
            return false;
        }
    }

    /**
     * The next message. Ignores invalid datagrams: any program can send to this port. Answers the PINGs
     * by which the mediator checks that this client is alive.
     *
     * @throws IOException if none comes in this time, or nobody listens there
     */
    DriverMsg receive(int timeoutMs) throws IOException {
        long end = System.nanoTime() + timeoutMs * 1_000_000L;
        DatagramPacket packet = new DatagramPacket(new byte[65536], 65536);
        while (true) {
            long left = (end - System.nanoTime()) / 1_000_000L;
            socket.setSoTimeout((int) Math.max(1, left)); // 0 would be for ever
            socket.receive(packet);
            DriverMsg message;
            try {
                ByteBuffer frame = ByteBuffer.wrap(packet.getData(), 0, packet.getLength());
                frame.position(2 + Short.toUnsignedInt(frame.getShort()));
                byte[] body = new byte[Short.toUnsignedInt(frame.getShort())];
                frame.get(body);
                message = parse(body);
            } catch (RuntimeException | InvalidProtocolBufferException junk) {
                continue;
            }
            if (message.getType() != MsgType.PING) {
                return message;
            }
            DriverMsg.Builder pong = DriverMsg.newBuilder().setType(MsgType.PONG);
            sendOnce(MEDIATOR, (message.hasSynNum() ? pong.setAckNum(message.getSynNum()) : pong).build());
        }
    }

    DriverMsg parse(byte[] message) throws InvalidProtocolBufferException {
        return DriverMsg.parseFrom(message, registry);
    }

    /** Tells all devices that this client leaves. */
    void leave() throws IOException {
        sendOnce(MEDIATOR, DriverMsg.newBuilder().setType(MsgType.CLIENT_DIED).build());
        socket.close();
    }
}
