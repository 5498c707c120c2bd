import com.google.protobuf.ExtensionRegistry;
import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.PortUnreachableException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.security.Security;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import pl.edu.agh.amber.common.proto.CommonProto.DriverHdr;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;
import pl.edu.agh.amber.dummy.proto.DummyProto;
import thermometer.ThermometerProto;

/**
 * Queries a Dummy and a thermometer, if they are available.
 *
 * <pre>./run Client [HOST [PORT [TIMES]]]</pre>
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
final class Client {
    private static final int MEDIATOR = 0;
    private static final int DUMMY = 5;
    private static final int THERMOMETER = 201;
    /** HOST, HOST:PORT or [IPV6]:PORT; an IPv6 address without brackets does not match. */
    private static final Pattern ADDRESS = Pattern.compile("(\\[.*\\]|[^:]*)(?::(\\d+))?");

    private final String host;
    private final int port;
    private DatagramSocket socket;
    private final ExtensionRegistry registry = ExtensionRegistry.newInstance();
    private int lastNumber;

    private Client(String host, int port) throws Exception {
        this.host = host;
        this.port = port;
        DummyProto.registerAllExtensions(registry);
        ThermometerProto.registerAllExtensions(registry);
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
            opened.setSoTimeout(1000);
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
        send(MEDIATOR, MsgType.PING);
    }

    private void connectAgain() {
        try {
            connect();
        } catch (IOException | RuntimeException error) {
            System.err.println("error: " + error.getMessage());
        }
    }

    private void send(int deviceType, DriverMsg message) throws IOException {
        byte[] header = DriverHdr.newBuilder().setDeviceType(deviceType).setDeviceID(0).build().toByteArray();
        byte[] body = message.toByteArray();
        ByteBuffer frame = ByteBuffer.allocate(4 + header.length + body.length);
        frame.putShort((short) header.length).put(header).putShort((short) body.length).put(body);
        socket.send(new DatagramPacket(frame.array(), frame.capacity()));
    }

    private void send(int deviceType, MsgType type) throws IOException {
        send(deviceType, DriverMsg.newBuilder().setType(type).build());
    }

    /** The next message. Ignores invalid datagrams: any program can send to this port. */
    private DriverMsg receive() throws Exception {
        while (true) {
            DatagramPacket packet = new DatagramPacket(new byte[65536], 65536);
            socket.receive(packet);
            try {
                ByteBuffer frame = ByteBuffer.wrap(packet.getData(), 0, packet.getLength());
                frame.position(2 + Short.toUnsignedInt(frame.getShort()));
                byte[] body = new byte[Short.toUnsignedInt(frame.getShort())];
                frame.get(body);
                return DriverMsg.parseFrom(body, registry);
            } catch (RuntimeException | InvalidProtocolBufferException junk) {
                continue;
            }
        }
    }

    /** The answer to a request; null if it could not be sent, the device is missing or UDP lost a packet. */
    private DriverMsg request(int deviceType, DriverMsg.Builder question) throws Exception {
        int number = ++lastNumber;
        DriverMsg message = question.setType(MsgType.DATA).setSynNum(number).build();
        try {
            send(deviceType, message);
        } catch (IOException unsent) {
            connectAgain();
            try {
                send(deviceType, message);
            } catch (IOException error) {
                System.err.println("error: not sent: " + error.getMessage());
                return null;
            }
        }
        try {
            return answer(number);
        } catch (SocketTimeoutException | PortUnreachableException silent) {
            connectAgain();
            return null;
        }
    }

    private DriverMsg answer(int number) throws Exception {
        while (true) {
            DriverMsg message = receive();
            if (message.getType() == MsgType.PING) { // the mediator checks that this client is alive
                DriverMsg.Builder pong = DriverMsg.newBuilder().setType(MsgType.PONG);
                send(MEDIATOR, (message.hasSynNum() ? pong.setAckNum(message.getSynNum()) : pong).build());
            } else if (message.getAckNum() == number) {
                // DRIVER_DIED instead of an answer: the device is not available.
                return message.getType() == MsgType.DATA ? message : null;
            }
        }
    }

    /** Queries both devices, and prints the answers. Returns their number. */
    private int query() throws Exception {
        int answers = 0;
        DriverMsg.Builder status = DriverMsg.newBuilder().setExtension(DummyProto.getStatus, true);
        DriverMsg dummy = request(DUMMY, status);
        if (dummy != null && dummy.hasExtension(DummyProto.message)) {
            answers++;
            System.out.println("the dummy says: " + dummy.getExtension(DummyProto.message));
        }
        DriverMsg.Builder question =
                DriverMsg.newBuilder().setExtension(ThermometerProto.getTemperature, true);
        DriverMsg thermometer = request(THERMOMETER, question);
        if (thermometer != null && thermometer.hasExtension(ThermometerProto.temperature)) {
            answers++;
            ThermometerProto.Temperature temperature = thermometer.getExtension(ThermometerProto.temperature);
            System.out.println(temperature.hasCelsius()
                    ? String.format("the thermometer says: %.1f degrees", temperature.getCelsius())
                    : "the thermometer has no sensor");
        }
        return answers;
    }

    public static void main(String[] arguments) throws Exception {
        String address = arguments.length > 0 ? arguments[0] : System.getenv("AMBER_MEDIATOR");
        if (address == null || address.isEmpty()) {
            address = "127.0.0.1";
        }
        Matcher parts = ADDRESS.matcher(address);
        String host = parts.matches() ? parts.group(1) : address;
        String port = parts.matches() ? parts.group(2) : null;
        if (arguments.length > 1) {
            port = arguments[1];
        }
        int times = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1;
        // The name of the mediator may get another address.
        Security.setProperty("networkaddress.cache.ttl", "1");
        Client client = new Client(host, port == null ? 26233 : Integer.parseInt(port));
        int answers = client.query();
        while (--times > 0) {
            Thread.sleep(1000);
            answers += client.query();
        }
        if (answers == 0) {
            System.err.println("error: no answer; is a mediator with a dummy or a thermometer running there?");
            System.exit(1);
        }
        client.send(MEDIATOR, MsgType.CLIENT_DIED); // tells all devices that this client leaves
    }
}
