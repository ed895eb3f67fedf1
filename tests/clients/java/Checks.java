import com.google.gson.Gson;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** What an application is asked to do, and what became of each; see ../README.md. */
final class Checks {
    private final String name;
    private final List<List<String>> done = new ArrayList<>();

    /** Of the application that this class is a part of. */
    Checks(String name, Class<?> part) {
        this.name = name + " " + part.getPackage().getImplementationVersion();
    }

    /** Notes whether the call did what it says: it returns whether that is so. */
    void check(String what, Callable<Boolean> call) {
        String result;
        try {
            result = call.call() ? "works" : "lost";
        } catch (Exception error) { // whatever the application makes of a refusal
            Throwable why = error;
            while (why.getCause() != null) {
                why = why.getCause();
            }
            System.err.println(name + ": " + what + ": " + why);
            result = "refused";
        }
        done.add(List.of(what, result));
    }

    void say() {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("application", name);
        said.put("checks", done);
        System.out.println(new Gson().toJson(said));
    }
}
